// SPDX-License-Identifier: Apache-2.0

// Package synctrack reports when every object of an initial list has been processed, even if
// workers process it after their handler has returned.
//
//	informer -> handler -> [synctrack] -> HasSynced
//
// To use it, call Start and Finished around the work on each object of the initial list,
// UpstreamHasSynced when the informer has synced, and ask HasSynced.
//
// Read tracker.go, lazy.go. Then go test ./compat/cache/synctrack. Goroutines: none. Locking: one
// mutex per tracker.
//
// Source: tools/cache/synctrack/synctrack.go SingleFileTracker, tools/cache/synctrack/lazy.go Lazy
package synctrack

import "sync"

// tracker is synced when upstream is synced and nothing is pending. It stays synced.
//
//	K1  synced is closed  =>  upstream; it closes as soon as upstream && nothing is pending
type tracker struct {
	name   string
	synced chan struct{}

	mu       sync.Mutex
	upstream bool
}

// checkLocked closes synced if K1 demands it.
func (t *tracker) checkLocked(pending int) {
	if t.upstream && pending == 0 && !t.HasSynced() {
		close(t.synced)
	}
}

// Name returns the name given to the constructor.
func (t *tracker) Name() string { return t.name }

// Done returns a channel that closes when HasSynced becomes true.
func (t *tracker) Done() <-chan struct{} { return t.synced }

// HasSynced returns true when the source has synced and every key started before that is finished.
// The source must not report that it has synced before Start was called for its last object.
func (t *tracker) HasSynced() bool {
	select {
	case <-t.synced:
		return true
	default:
		return false
	}
}

// AsyncTracker tracks objects that several workers process, by key.
//
// Source: tools/cache/synctrack/synctrack.go AsyncTracker
type AsyncTracker[T comparable] struct {
	tracker
	pending map[T]struct{}
}

// NewAsyncTracker returns a tracker without started keys.
//
// Source: tools/cache/synctrack/synctrack.go NewAsyncTracker
func NewAsyncTracker[T comparable](name string) *AsyncTracker[T] {
	return &AsyncTracker[T]{tracker: tracker{name: name, synced: make(chan struct{})},
		pending: map[T]struct{}{}}
}

// Start records that key, of the initial list, waits to be processed.
func (t *AsyncTracker[T]) Start(key T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending[key] = struct{}{}
}

// Finished records that key has been processed. It has no effect for a key that was not started.
func (t *AsyncTracker[T]) Finished(key T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.pending, key)
	t.checkLocked(len(t.pending))
}

// UpstreamHasSynced records that the source has delivered its initial list: Start was called for
// all of it.
func (t *AsyncTracker[T]) UpstreamHasSynced() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.upstream = true
	t.checkLocked(len(t.pending))
}

// SingleFileTracker tracks objects that are processed one after the other, by counting.
//
// Source: tools/cache/synctrack/synctrack.go SingleFileTracker
type SingleFileTracker struct {
	tracker
	pending int
}

// NewSingleFileTracker returns a tracker without started objects.
//
// Source: tools/cache/synctrack/synctrack.go NewSingleFileTracker
func NewSingleFileTracker(name string) *SingleFileTracker {
	return &SingleFileTracker{tracker: tracker{name: name, synced: make(chan struct{})}}
}

// Start records that an object of the initial list waits to be processed.
func (t *SingleFileTracker) Start() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.pending++
}

// Finished records that an object has been processed. It panics without a matching Start, because
// the count would be wrong from then on.
func (t *SingleFileTracker) Finished() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.pending == 0 {
		panic("synctrack: negative counter; this logic error means HasSynced may return " +
			"incorrect value")
	}
	t.pending--
	t.checkLocked(t.pending)
}

// UpstreamHasSynced records that the source has delivered its initial list: Start was called for
// all of it.
func (t *SingleFileTracker) UpstreamHasSynced() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.upstream = true
	t.checkLocked(t.pending)
}
