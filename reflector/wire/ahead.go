// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"errors"
	"io"
	"sync"
	"time"
)

// ahead reads a body ahead of its own reader, so that the network never waits for the program.
//
//	body -> run, a goroutine -> chunks -> Read
//
//	R1  Read waits only if no bytes wait
//	R2  run pauses only while it has ownChunks or more, all are full, and share grants no other
//	R3  the error or the panic of body follows all its bytes
type ahead struct {
	share   *share        // nil is no limit
	stopped chan struct{} // closed by stop

	mu       sync.Mutex
	changed  sync.Cond // of the fields below
	waiting  int64     // bytes of the chunks that were not read
	chunks   [][]byte  // each is full, except for the last one, which run fills
	read     int       // bytes of the first chunk that were read
	err      error     // of body; errStopped after stop
	panicked any
	arrived  time.Time // when body last returned bytes
	idles    bool      // Read waits
}

var chunkPool = sync.Pool{New: func() any { return new([chunkBytes]byte) }}

var (
	errStopped  = errors.New("stopped")
	errPanicked = errors.New("panicked")
)

// readAhead starts to read body, within budget if that is not nil.
func readAhead(body io.Reader, budget *Budget) *ahead {
	a := &ahead{stopped: make(chan struct{})}
	a.changed.L = &a.mu
	if budget != nil {
		a.share = &share{budget: budget, wake: a.wake}
	}
	go a.run(body)
	return a
}

// run reads body until its end.
func (a *ahead) run(body io.Reader) {
	defer func() {
		if panicked := recover(); panicked != nil {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.err, a.panicked = cmp.Or(a.err, errPanicked), panicked
			a.changed.Broadcast()
		}
	}()
	empty := 0
	for space := a.commit(0, nil); space != nil; {
		n, err := body.Read(space)
		if empty++; n > 0 {
			empty = 0
		}
		if empty == 100 { // a reader that returns nothing and no error for ever is broken
			err = cmp.Or(err, io.ErrNoProgress)
		}
		space = a.commit(n, err)
	}
}

// commit notes that body has read n bytes into the space that commit returned last. It returns
// space for the next bytes, for which it may have to wait, or nil if run must end.
func (a *ahead) commit(n int, err error) (space []byte) {
	a.mu.Lock()
	defer a.mu.Unlock()
	last := len(a.chunks) - 1
	if n > 0 {
		a.chunks[last] = a.chunks[last][:len(a.chunks[last])+n]
		a.waiting += int64(n)
		a.arrived, a.idles = time.Now(), false
	}
	a.err = cmp.Or(a.err, err)
	a.changed.Broadcast()
	for a.err == nil {
		last = len(a.chunks) - 1
		switch {
		case last >= 0 && len(a.chunks[last]) < chunkBytes:
			return a.chunks[last][len(a.chunks[last]):chunkBytes]
		case a.share == nil || a.share.reserve(len(a.chunks)+1):
			a.chunks = append(a.chunks, chunkPool.Get().(*[chunkBytes]byte)[:0])
		default:
			a.changed.Wait()
		}
	}
	return nil
}

// wake makes run try again to get a chunk.
func (a *ahead) wake() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changed.Broadcast()
}

// Read implements io.Reader. It is for one goroutine.
func (a *ahead) Read(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for a.waiting == 0 && a.err == nil {
		a.idles = true
		a.changed.Wait()
	}
	a.idles = false
	switch {
	case a.err == errStopped:
		return 0, a.err
	case a.waiting > 0:
	case a.panicked != nil:
		panic(a.panicked)
	default:
		return 0, a.err
	}
	n := copy(p, a.chunks[0][a.read:])
	a.read += n
	a.waiting -= int64(n)
	if a.read == chunkBytes {
		chunkPool.Put((*[chunkBytes]byte)(a.chunks[0]))
		a.chunks[0] = nil
		a.chunks, a.read = a.chunks[1:], 0
		if a.share != nil {
			a.share.giveBack(len(a.chunks))
		}
	}
	a.changed.Broadcast()
	return n, nil
}

// first returns the first byte without reading it.
func (a *ahead) first() (byte, error) {
	var begin [1]byte
	if _, err := a.Read(begin[:]); err != nil {
		return 0, unexpected(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.read--
	a.waiting++
	return begin[0], nil
}

// stop ends both sides, and may be called again. If run waits for the body, closing that ends it.
func (a *ahead) stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err != errStopped {
		a.err = errStopped
		close(a.stopped)
		a.changed.Broadcast()
		if a.share != nil {
			a.share.giveBack(0)
		}
	}
}

// unexpected is err, or what io.EOF means inside an answer.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
