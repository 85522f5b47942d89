// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"io"
	"os"
	"sync/atomic"

	"golang.org/x/term"
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
		return Fail(Failed, "standard output: %w", *err)
	}
	return nil
}

// File returns the file that a standard stream of a command is, or false.
func File(stream any) (file *os.File, ok bool) {
	if output, checked := stream.(*standardOutput); checked {
		stream = output.Writer
	}
	file, ok = stream.(*os.File)
	return file, ok
}

// Terminal returns the width of the terminal that a standard stream of a command is, or false. The
// width is 0 if it is not known.
func Terminal(stream any) (width int, ok bool) {
	file, ok := File(stream)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(file.Fd()))
	if err != nil {
		return 0, true
	}
	return width, true
}
