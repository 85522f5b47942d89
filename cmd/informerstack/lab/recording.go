// SPDX-License-Identifier: Apache-2.0

//go:build !js

package lab

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
)

// maxLineBytes bounds a line of a recording that is read.
const maxLineBytes = 4 << 20

// line is one line of a recording. One field is set.
type line struct {
	Hello json.RawMessage `json:"hello,omitempty"`
	Frame json.RawMessage `json:"frame,omitempty"`
}

// Record writes a recording to w until stop is called: JSON lines, each in one Write. Nothing is
// written after the first error of w, and stop returns that error.
func (l *Lab) Record(w io.Writer) (stop func() error) {
	frames, leave := l.stream.open()
	ended := make(chan struct{})
	done := make(chan error, 1)
	go func() { done <- record(w, l.recordedHello(), frames, ended) }()
	return sync.OnceValue(func() error {
		leave()
		close(ended)
		return <-done
	})
}

// recordedHello is the hello of a recording: without the token, and nothing can be written.
func (l *Lab) recordedHello() Hello {
	hello := l.hello
	hello.Token, hello.Writable, hello.Lessons = "", false, []string{}
	return hello
}

func record(w io.Writer, hello Hello, frames <-chan []byte, ended <-chan struct{}) error {
	encoded, err := json.Marshal(hello)
	if err == nil {
		err = writeLine(w, line{Hello: encoded})
	}
	for err == nil {
		select {
		case frame, open := <-frames:
			if !open {
				return nil
			}
			err = writeLine(w, line{Frame: frame})
		case <-ended:
			return nil
		}
	}
	return err
}

func writeLine(w io.Writer, l line) error {
	encoded, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = w.Write(append(encoded, '\n'))
	return err
}

// Replay serves a recording to the page. Close it when it is not needed any more.
type Replay struct {
	path   string
	hello  []byte
	closed chan struct{}
	close  func()
}

// NewReplay returns a Replay of the recording in a file. It fails if the file is no recording.
func NewReplay(path string) (*Replay, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := scan(file)
	var first line
	var hello Hello
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &first) != nil ||
		len(first.Hello) == 0 || json.Unmarshal(first.Hello, &hello) != nil {
		return nil, fmt.Errorf("%s is not a recording of the laboratory", path)
	}
	hello.Replay, hello.Writable, hello.Token, hello.Lessons = true, false, "", []string{}
	encoded, err := json.Marshal(hello)
	if err != nil {
		return nil, err
	}
	r := &Replay{path: path, hello: encoded, closed: make(chan struct{})}
	r.close = sync.OnceFunc(func() { close(r.closed) })
	return r, nil
}

func scan(r io.Reader) *bufio.Scanner {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLineBytes)
	return lines
}

// Close ends the streams of the pages.
func (r *Replay) Close() { r.close() }

// ServeHTTP serves the page and the recording, with the checks of Lab.ServeHTTP.
func (r *Replay) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	serveGuarded(w, request, func(mux *http.ServeMux) {
		mux.HandleFunc("GET /lab/events", r.serveHello)
		mux.HandleFunc("GET /lab/recording", r.serveFile)
	})
}

// serveHello sends hello, and no frames. The stream stays open, so that the page is connected.
func (r *Replay) serveHello(w http.ResponseWriter, request *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, err := fmt.Fprintf(w, "event: hello\ndata: %s\n\n", r.hello)
	if err != nil || http.NewResponseController(w).Flush() != nil {
		return
	}
	select {
	case <-r.closed:
	case <-request.Context().Done():
	}
}

func (r *Replay) serveFile(w http.ResponseWriter, _ *http.Request) {
	file, err := os.Open(r.path)
	if err != nil {
		refuse(w, http.StatusNotFound, errors.New("the recording cannot be read"))
		return
	}
	defer file.Close()
	w.Header().Set("Content-Type", "application/jsonl")
	_, _ = io.Copy(w, file) // a client that stops reading needs no answer
}

// maxClipBytes bounds the frames of a Clip: more than a minute with 10,000 objects at 1,000 changes
// per second, and many minutes of a quiet run.
const maxClipBytes = 24 << 20

// Clip is the end of a recording in memory, for WriteHTML. It is an io.Writer for Lab.Record. The
// zero value is empty.
type Clip struct {
	limit  int // of size; 0 means maxClipBytes
	mu     sync.Mutex
	hello  []byte
	frames [][]byte
	size   int
}

// Write adds one line of a recording. If the clip becomes too long, it drops the oldest frames. A
// line that is cut off is ignored: it is the last one of a program that was killed.
func (c *Clip) Write(text []byte) (int, error) {
	var l line
	if json.Unmarshal(text, &l) != nil {
		return len(text), nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(l.Hello) > 0 {
		c.hello = bytes.Clone(l.Hello)
	}
	if len(l.Frame) > 0 {
		c.frames = append(c.frames, bytes.Clone(l.Frame))
		c.size += len(l.Frame)
	}
	for c.size > cmp.Or(c.limit, maxClipBytes) {
		c.size -= len(c.frames[0])
		c.frames[0] = nil
		c.frames = c.frames[1:]
	}
	return len(text), nil
}

// ReadFrom adds the lines of a recording.
func (c *Clip) ReadFrom(r io.Reader) (int64, error) {
	var n int64
	lines := scan(r)
	for lines.Scan() {
		_, _ = c.Write(lines.Bytes()) // never fails
		n += int64(len(lines.Bytes())) + 1
	}
	return n, lines.Err()
}
