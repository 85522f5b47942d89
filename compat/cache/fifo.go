// SPDX-License-Identifier: Apache-2.0

package cache

import "sync"

// FIFO is a Queue of objects in their newest states. An object that is queued twice is popped once,
// and an object that is deleted while it is queued is not popped.
//
//	Q1  every key of items is in queue; other keys in queue were deleted, and Pop skips them
//	Q2  first <= len(queue); the first list's keys are the oldest in queue
//	Q3  synced is closed  <=>  begun && first == 0, and no process function runs on an object of
//	    the first list
//
// Source: tools/cache/fifo.go FIFO
type FIFO struct {
	keyFunc KeyFunc
	synced  chan struct{} // closed once

	mu     sync.Mutex
	cond   sync.Cond // its lock is mu
	closed bool
	items  map[string]any
	queue  []string
	begun  bool // Add, Update, Delete or Replace was called
	first  int  // keys of the first list that are queued
}

var (
	_ Queue       = (*FIFO)(nil)
	_ DoneChecker = (*FIFO)(nil)
)

// NewFIFO returns an empty queue.
//
// Source: tools/cache/fifo.go NewFIFO
func NewFIFO(keyFunc KeyFunc) *FIFO {
	f := &FIFO{keyFunc: keyFunc, synced: make(chan struct{}), items: map[string]any{}}
	f.cond.L = &f.mu
	return f
}

// Add queues obj, or replaces the queued object that has its key.
func (f *FIFO) Add(obj any) error {
	key, err := f.keyFunc(obj)
	if err != nil {
		return KeyError{Obj: obj, Err: err}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.beginLocked(0)
	if _, waits := f.items[key]; !waits {
		f.queue = append(f.queue, key)
	}
	f.items[key] = obj
	f.cond.Signal()
	return nil
}

// Update does the same as Add.
func (f *FIFO) Update(obj any) error { return f.Add(obj) }

// Delete removes the queued object that has obj's key.
func (f *FIFO) Delete(obj any) error {
	key, err := f.keyFunc(obj)
	if err != nil {
		return KeyError{Obj: obj, Err: err}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.beginLocked(0)
	delete(f.items, key)
	return nil
}

// Replace removes every queued object, and queues list in its order. HasSynced waits for the
// objects of the first Replace, unless another object was added before it.
func (f *FIFO) Replace(list []any, _ string) error {
	items := make(map[string]any, len(list))
	var queue []string
	for _, obj := range list {
		key, err := f.keyFunc(obj)
		if err != nil {
			return KeyError{Obj: obj, Err: err}
		}
		if _, twice := items[key]; !twice {
			queue = append(queue, key)
		}
		items[key] = obj
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.items, f.queue = items, queue
	f.first = min(f.first, len(queue))
	f.beginLocked(len(queue))
	f.cond.Broadcast()
	return nil
}

// Resync does nothing: all known objects are queued.
func (f *FIFO) Resync() error { return nil }

// Pop blocks until an object is queued, removes the oldest and runs process on it, with the queue
// locked. It returns the object and process's error. Once the queue is closed and empty it returns
// ErrFIFOClosed.
func (f *FIFO) Pop(process PopProcessFunc) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.checkLocked() // by then process has returned
	for {
		for len(f.queue) == 0 {
			f.checkLocked()
			if f.closed {
				return nil, ErrFIFOClosed
			}
			f.cond.Wait()
		}
		key := f.queue[0]
		f.queue = f.queue[1:]
		initial := !f.HasSynced()
		f.first = max(0, f.first-1)
		if obj, waits := f.items[key]; waits {
			delete(f.items, key)
			return obj, process(obj, initial)
		}
	}
}

func (f *FIFO) beginLocked(first int) {
	if !f.begun {
		f.begun, f.first = true, first
	}
	f.checkLocked()
}

func (f *FIFO) checkLocked() {
	if f.begun && f.first == 0 && !f.HasSynced() {
		close(f.synced)
	}
}

// HasSynced is true once every object of the first Replace was popped and processed, or at once if
// another change came first.
func (f *FIFO) HasSynced() bool { return IsDone(f) }

// HasSyncedChecker returns HasSynced as a channel.
func (f *FIFO) HasSyncedChecker() DoneChecker { return f }

// Name implements DoneChecker.
func (f *FIFO) Name() string { return "FIFO" }

// Done returns a channel that closes when HasSynced becomes true.
func (f *FIFO) Done() <-chan struct{} { return f.synced }

// Close wakes every blocked Pop. The queued objects can still be popped.
func (f *FIFO) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.cond.Broadcast()
}

// IsClosed reports whether Close was called.
func (f *FIFO) IsClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}
