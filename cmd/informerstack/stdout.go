// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"io"
	"os"
	"sync/atomic"
)

// standardOutput keeps the first error of a write, so that a full disk is not a success, whatever
// the command does about it. The error also ends the command.
type standardOutput struct {
	io.Writer
	end    context.CancelFunc
	failed atomic.Pointer[error]
}

// Write implements io.Writer.
func (s *standardOutput) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	if err != nil && s.failed.CompareAndSwap(nil, &err) {
		s.end()
	}
	return n, err
}

// err returns the first error of a write.
func (s *standardOutput) err() error {
	if err := s.failed.Load(); err != nil {
		return fail(exitFailed, "standard output: %w", *err)
	}
	return nil
}

// fileOf returns stream, or the writer in a standardOutput, as a file. It returns false if that is
// no file.
func fileOf(stream any) (file *os.File, ok bool) {
	if output, checked := stream.(*standardOutput); checked {
		stream = output.Writer
	}
	file, ok = stream.(*os.File)
	return file, ok
}
