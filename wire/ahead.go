// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"io"
	"sync"
)

// ahead reads a body ahead of its own reader, so that the network never waits for the program.
//
//	body -> run, a goroutine -> chunks -> Read
//
//	R1  Read waits only if no bytes wait, and calls beforeWait first
//	R2  run pauses only while at least limit bytes wait
//	R3  the error or the panic of body follows all its bytes
type ahead struct {
	limit      int64
	beforeWait func() error
	stopped    chan struct{} // closed by stop

	mu       sync.Mutex
	changed  sync.Cond // of the fields below
	chunks   [][]byte  // each is full, except for the last one
	read     int       // bytes of the first chunk that were read
	waiting  int64     // bytes of all chunks that were not
	err      error     // of body
	panicked any
}

const chunkBytes = 32 << 10

var chunkPool = sync.Pool{New: func() any { return new([chunkBytes]byte) }}

var errStopped = errors.New("stopped")

// readAhead starts to read body.
func readAhead(body io.Reader, limit int64) *ahead {
	a := &ahead{limit: limit, stopped: make(chan struct{})}
	a.beforeWait = func() error { return nil }
	a.changed.L = &a.mu
	go a.run(body)
	return a
}

func (a *ahead) run(body io.Reader) {
	defer func() {
		if panicked := recover(); panicked != nil {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.err, a.panicked = errStopped, panicked
			a.changed.Broadcast()
		}
	}()
	buffer := make([]byte, chunkBytes)
	for empty := 0; ; empty++ {
		n, err := body.Read(buffer)
		if n > 0 {
			empty = 0
		}
		if empty == 100 { // a reader that returns nothing and no error for ever is broken
			err = io.ErrNoProgress
		}
		if !a.add(buffer[:n], err) {
			return
		}
	}
}

// add appends what a Read of body has returned, and reports whether to read on, for which it may
// have to wait.
func (a *ahead) add(data []byte, err error) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.waiting += int64(len(data))
	for len(data) > 0 {
		last := len(a.chunks) - 1
		if last < 0 || len(a.chunks[last]) == chunkBytes {
			a.chunks = append(a.chunks, chunkPool.Get().(*[chunkBytes]byte)[:0])
			last++
		}
		n := min(len(data), chunkBytes-len(a.chunks[last]))
		a.chunks[last] = append(a.chunks[last], data[:n]...)
		data = data[n:]
	}
	a.err = err
	a.changed.Broadcast()
	for a.waiting >= a.limit && !a.isStopped() {
		a.changed.Wait()
	}
	return a.err == nil && !a.isStopped()
}

// first returns the first byte without reading it.
func (a *ahead) first() (byte, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.waitLocked(); err != nil {
		return 0, err
	}
	return a.chunks[0][0], nil
}

// Read implements io.Reader.
func (a *ahead) Read(p []byte) (int, error) {
	if a.isEmpty() {
		if err := a.beforeWait(); err != nil {
			return 0, err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.waitLocked(); err != nil {
		return 0, err
	}
	n := copy(p, a.chunks[0][a.read:])
	a.read += n
	a.waiting -= int64(n)
	if a.read == chunkBytes {
		chunkPool.Put((*[chunkBytes]byte)(a.chunks[0]))
		a.chunks[0] = nil
		a.chunks, a.read = a.chunks[1:], 0
	}
	a.changed.Broadcast()
	return n, nil
}

func (a *ahead) isEmpty() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiting == 0
}

// waitLocked waits for bytes, or returns why there will be none.
func (a *ahead) waitLocked() error {
	for a.waiting == 0 && a.err == nil && !a.isStopped() {
		a.changed.Wait()
	}
	switch {
	case a.isStopped():
		return errStopped
	case a.waiting > 0:
		return nil
	case a.panicked != nil:
		panic(a.panicked)
	}
	return a.err
}

// stop ends both sides. If run waits for the body, closing that ends it. stop may be called once.
func (a *ahead) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.stopped)
	a.changed.Broadcast()
}

func (a *ahead) isStopped() bool {
	select {
	case <-a.stopped:
		return true
	default:
		return false
	}
}

// unexpected is err, or what io.EOF means inside an answer.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
