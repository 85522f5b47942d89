// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"net/http"
	"runtime"
	"slices"
	"sync"
	"weak"

	"k8s.io/client-go/rest"
)

// Budget bounds the bytes that watches have read ahead of their receivers. The watches of one
// client and server share one, see Options.ReadAhead. A Budget may be used by any number of watches
// at the same time.
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
	ownChunks        = 4        // 64 KiB
	defaultReadAhead = 16 << 20 // bytes
)

// NewBudget returns a Budget of size bytes. With 0 or less, each watch has only its own 64 KiB.
func NewBudget(size int64) *Budget { return &Budget{free: size} }

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

// giveBack gives back what the watch does not need for count chunks. 0 is the end of the watch.
func (s *share) giveBack(count int) {
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if count == 0 {
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

// budgetKey is a client and a host. Servers under different paths of a host share a Budget.
type budgetKey struct {
	client weak.Pointer[http.Client]
	host   string
}

var budgets sync.Map // of *Budget, by budgetKey

// unknownClients is the Budget of watches of a client that is not known: those of a Negotiator and
// of ReadWatch.
var unknownClients = NewBudget(int64(defaultReadAhead))

// budgetOf returns the Budget of the watches of a client and its server. It is forgotten with the
// client.
func budgetOf(client Getter) *Budget {
	c, ok := client.(*rest.RESTClient)
	if !ok || c.Client == nil || c.Client == http.DefaultClient {
		return unknownClients
	}
	key := budgetKey{weak.Make(c.Client), c.Get().URL().Host}
	budget, known := budgets.LoadOrStore(key, NewBudget(int64(defaultReadAhead)))
	if !known {
		runtime.AddCleanup(c.Client, func(key budgetKey) { budgets.Delete(key) }, key)
	}
	return budget.(*Budget)
}
