// SPDX-License-Identifier: Apache-2.0

package readahead

import (
	"slices"
	"sync"
)

// Budget bounds the bytes that watches have read ahead of their receivers. It may be used by any
// number of watches at the same time. The zero value has 0 bytes.
//
//	B1  a watch may always hold ownChunks, whatever the others hold
//	B2  beyond these, it gets another chunk while it holds less than what is free
//	B3  free plus what the watches hold beyond ownChunks is the size
//
// So a watch with a receiver that hangs holds at most half of what the others had left, and stops
// no other one.
type Budget struct {
	mu      sync.Mutex
	free    int64    // bytes
	waiting []*share // for a chunk, oldest first; B2 allows none of them one now
}

const chunkBytes = 16 << 10

// Tests lower these, so that a few objects reach them.
var (
	ownChunks    = 4        // 64 KiB
	defaultBytes = 16 << 20 // of a Budget
)

// Unknown is the Budget of watches of a client that is not known: those of swapped programs and of
// wire.ReadWatch.
var Unknown = &Budget{free: DefaultBytes()}

// DefaultBytes is the size of the Budget of a client and its server.
func DefaultBytes() int64 { return int64(defaultBytes) }

// Add makes b size bytes larger. With 0 bytes or less, each watch has only its own 64 KiB.
func (b *Budget) Add(size int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.free += size
}

// State returns the bytes that no watch holds, and the number of watches that wait for some.
func (b *Budget) State() (free int64, waiting int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.free, len(b.waiting)
}

// share is what one watch holds of a Budget. The watch's mutex is held when a method is called.
type share struct {
	budget *Budget
	wake   func() // makes the watch reserve again; called without locks
	held   int64  // bytes of chunks beyond ownChunks; guarded by budget.mu
}

// beyondOwn is how many bytes of count chunks the Budget has to give.
func beyondOwn(count int) int64 { return int64(max(count-ownChunks, 0)) * chunkBytes }

// reserve reports whether the watch may hold count chunks. If not, wake is called when it may.
func (s *share) reserve(count int) bool {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	ok := s.held >= beyondOwn(count) || b.grant(s)
	switch {
	case ok:
		b.forget(s)
	case !slices.Contains(b.waiting, s):
		b.waiting = append(b.waiting, s)
	}
	return ok
}

// grant gives s a chunk, if B2 allows it. The caller holds b.mu.
func (b *Budget) grant(s *share) bool {
	if s.held >= b.free || b.free < chunkBytes {
		return false
	}
	s.held += chunkBytes
	b.free -= chunkBytes
	return true
}

func (b *Budget) forget(s *share) {
	b.waiting = slices.DeleteFunc(b.waiting, func(w *share) bool { return w == s })
}

// giveBack gives back what the watch does not need for count chunks, and no longer waits for more
// if its own are enough. 0 is the end of the watch.
func (s *share) giveBack(count int) {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if count < ownChunks {
		b.forget(s)
	}
	more := s.held - beyondOwn(count)
	if more == 0 {
		return
	}
	s.held -= more
	b.free += more
	b.waiting = slices.DeleteFunc(b.waiting, func(w *share) bool {
		ok := b.grant(w)
		if ok {
			go w.wake() // it locks w's watch, and the caller has locked its own
		}
		return ok
	})
}
