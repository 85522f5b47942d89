// SPDX-License-Identifier: Apache-2.0

// Package readahead reads a body ahead of its reader, so that the network never waits for the
// program.
//
//	API server -> body -> [readahead] -> frames -> objects -> reflector
//
// Package wire reads the answers to LISTs and WATCHes through it, and compat/decoding the watches
// of swapped programs. The bytes that wait are those of a LIST, or within a [Budget] that watches
// share.
//
// Read readahead.go, then budget.go; then go test -v ./internal/readahead. Goroutines: one for each
// Reader, until the end of its body or Stop. Locking: each Reader has a mutex that guards its
// waiting bytes, and a Budget another one, which is locked last and held for additions alone.
package readahead

import (
	"cmp"
	"errors"
	"io"
	"sync"
	"time"
)

// Reader reads a body ahead of its own reader.
//
//	body -> run, a goroutine -> chunks -> Read
//
//	R1  Read waits only if no bytes wait
//	R2  run pauses only while it has ownChunks or more, all are full, and share grants no other
//	R3  the error or the panic of body follows all its bytes
//	R4  while body has no bytes and Read waits, there are no chunks
//
// For R4, run waits for the body with small and copies what that receives. It reads into the last
// chunk itself after a read that was filled, because then the body probably has more. So R4 does
// not hold after the rare bytes that fill a read to its end.
type Reader struct {
	Stopped chan struct{} // closed by Stop
	share   *share        // nil is no limit

	mu       sync.Mutex
	changed  sync.Cond // of the fields below
	waiting  int64     // bytes of the chunks that were not read
	chunks   [][]byte  // each is full, except for the last one, which run fills
	waits    bool      // run reads into small
	read     int       // bytes of the first chunk that were read
	err      error     // of body; ErrStopped after Stop
	panicked any
	arrived  time.Time // when body last returned bytes
	idles    bool      // Read waits

	small [smallBytes]byte // of run alone
}

// smallBytes are enough for most events, so that one read receives them.
const smallBytes = 2 << 10

var chunkPool = sync.Pool{New: func() any { return new([chunkBytes]byte) }}

// ErrStopped is the error of Read after Stop.
var ErrStopped = errors.New("stopped")

var errPanicked = errors.New("panicked")

// New starts to read body, within budget if that is not nil. A Reader must be read to an error, or
// stopped.
func New(body io.Reader, budget *Budget) *Reader {
	r := &Reader{Stopped: make(chan struct{})}
	r.changed.L = &r.mu
	if budget != nil {
		r.share = &share{budget: budget, wake: r.wake}
	}
	go r.run(body)
	return r
}

// run reads body until its end.
func (r *Reader) run(body io.Reader) {
	defer func() {
		if panicked := recover(); panicked != nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.err, r.panicked = cmp.Or(r.err, errPanicked), panicked
			r.changed.Broadcast()
		}
	}()
	empty := 0
	for space := r.commit(nil, 0, nil); space != nil; {
		n, err := body.Read(space)
		if empty++; n > 0 {
			empty = 0
		}
		if empty == 100 { // a reader that returns nothing and no error for ever is broken
			err = cmp.Or(err, io.ErrNoProgress)
		}
		space = r.commit(space, n, err)
	}
}

// commit notes that body has read n bytes into space, which commit returned last. It returns space
// for the next bytes, for which it may have to wait, or nil if run must end.
func (r *Reader) commit(space []byte, n int, err error) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > 0 {
		if len(r.chunks) == 0 { // Read has released the last one
			r.chunks = append(r.chunks, chunkPool.Get().(*[chunkBytes]byte)[:0])
		}
		last := &r.chunks[len(r.chunks)-1]
		if r.waits {
			*last = append(*last, space[:n]...)
		} else {
			*last = (*last)[:len(*last)+n]
		}
		r.waiting += int64(n)
		r.arrived, r.idles = time.Now(), false
	}
	r.waits = n == 0 || n < len(space)
	r.err = cmp.Or(r.err, err)
	r.changed.Broadcast()
	for r.err == nil {
		last := len(r.chunks) - 1
		hasRoom := last >= 0 && len(r.chunks[last]) < chunkBytes
		switch {
		case r.waits && last < 0:
			return r.small[:]
		case r.waits && hasRoom:
			return r.small[:min(smallBytes, chunkBytes-len(r.chunks[last]))]
		case hasRoom:
			return r.chunks[last][len(r.chunks[last]):chunkBytes]
		case r.share == nil || r.share.reserve(len(r.chunks)+1):
			r.chunks = append(r.chunks, chunkPool.Get().(*[chunkBytes]byte)[:0])
		default:
			r.changed.Wait()
		}
	}
	return nil
}

// wake makes run try again to get a chunk.
func (r *Reader) wake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changed.Broadcast()
}

// Read implements io.Reader, for one goroutine. It panics as the body did. Without room in p it
// waits until bytes wait.
func (r *Reader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.waiting == 0 && r.err == nil {
		r.idles = true
		r.changed.Wait()
	}
	r.idles = false
	switch {
	case r.err == ErrStopped:
		return 0, r.err
	case r.waiting > 0:
	case r.panicked != nil:
		panic(r.panicked)
	default:
		return 0, r.err
	}
	n := copy(p, r.chunks[0][r.read:])
	r.read += n
	r.waiting -= int64(n)
	for len(r.chunks) > 0 && r.read == len(r.chunks[0]) && (r.read == chunkBytes || r.waits) {
		chunkPool.Put((*[chunkBytes]byte)(r.chunks[0][:chunkBytes]))
		r.chunks[0] = nil
		r.chunks, r.read = r.chunks[1:], 0
		if r.share != nil && len(r.chunks)+1 >= ownChunks { // with fewer it holds nothing else
			r.share.giveBack(len(r.chunks))
		}
	}
	r.changed.Broadcast()
	return n, nil
}

// First returns the first byte without reading it. It is called before Read.
func (r *Reader) First() (byte, error) {
	if _, err := r.Read(nil); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return 0, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.chunks[0][r.read], nil
}

// Quiet reports when bytes arrived last, and whether Read waits for the body while between reports
// true. between is called while Read cannot return, and must not block.
func (r *Reader) Quiet(between func() bool) (arrived time.Time, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.arrived, r.idles && between()
}

// Stop ends both sides, and may be called again, from any goroutine. If run waits for the body,
// closing that ends it.
func (r *Reader) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != ErrStopped {
		r.err = ErrStopped
		close(r.Stopped)
		r.changed.Broadcast()
		if r.share != nil {
			r.share.giveBack(0)
		}
	}
}
