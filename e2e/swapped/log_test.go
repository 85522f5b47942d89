// SPDX-License-Identifier: Apache-2.0

package swapped_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// logPipe is the log of a program. Its reader can stop reading, as a log driver that hangs does:
// then the program waits where it writes a line.
type logPipe struct {
	t    *testing.T
	path string
	file *os.File // both ends, so that neither side waits for the other

	mu   sync.Mutex // held while the log is not read
	text bytes.Buffer
}

func newLogPipe(t *testing.T) *logPipe {
	t.Helper()
	p := &logPipe{t: t, path: filepath.Join(t.TempDir(), "log")}
	require.NoError(t, syscall.Mkfifo(p.path, 0o600))
	var err error
	p.file, err = os.OpenFile(p.path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	require.NoError(t, err)
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.read()
	}()
	t.Cleanup(func() {
		require.NoError(t, p.file.Close())
		<-read
		if t.Failed() {
			text := emptyLines.ReplaceAll(p.text.Bytes(), []byte("\n"))
			t.Logf("==> the log of the pipe\n%s", text[max(0, len(text)-8<<10):])
		}
	})
	return p
}

var emptyLines = regexp.MustCompile(`\n+`) // those of block

// read reads the log until the pipe is closed. While the log is blocked it holds the last part.
func (p *logPipe) read() {
	part := make([]byte, 4<<10)
	for {
		n, err := p.file.Read(part)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.text.Write(part[:n])
		p.mu.Unlock()
	}
}

// Log returns what the program has written.
func (p *logPipe) Log() ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.text.Bytes()), nil
}

// block stops reading, and fills the pipe: the next line waits until release.
func (p *logPipe) block() (release func()) {
	p.t.Helper()
	p.mu.Lock()
	for empty := bytes.Repeat([]byte("\n"), 4<<10); ; {
		require.NoError(p.t, p.file.SetWriteDeadline(time.Now().Add(100*time.Millisecond)))
		_, err := p.file.Write(empty)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return sync.OnceFunc(p.mu.Unlock)
		}
		require.NoError(p.t, err)
	}
}

// script returns a program that runs another one with its log in the pipe.
func (p *logPipe) script(program string) (script string) {
	p.t.Helper()
	script = p.path + "-" + filepath.Base(program)
	text := fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\" 2>'%s'\n", program, p.path)
	require.NoError(p.t, os.WriteFile(script, []byte(text), 0o700))
	return script
}
