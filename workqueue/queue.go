// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"context"
	"sync"
	"time"
)

// Typed is the queue of items to work on now. It has the order of the items and two sets:
//
//	            Add                     Get                  Done
//	unknown ----------> dirty, queued ------> processing ------------> unknown
//	                          ^                   | Add
//	                          |                   v
//	                          +------- processing and dirty
//	                            Done
//
// A dirty item has to be worked on, a worker has a processing one, and the queue orders the items
// that may be handed out. However often an item is added, it is queued once, and one worker has it.
//
//	Q1  the queue contains exactly the items that are dirty and not processing, each once
//	Q2  an item is processing exactly if a worker has it
//	Q3  no caller of Get waits while the queue has an item for it: each Push is followed by a
//	    Signal, and a caller that leaves without an item wakes the next
type Typed[T comparable] struct {
	metrics             *queueMetrics // may be nil
	drainProcessingOnly bool

	mu           sync.Mutex
	queue        Queue[T]
	dirty        map[T]time.Duration // when each was added: queueMetrics.now, or 0
	processing   map[T]work
	gets         uint64    // number of calls of Get that returned an item
	mostDirty    int       // since dirty was allocated
	added        sync.Cond // wakes callers of Get
	shuttingDown bool
	shutDowns    int       // number of calls of ShutDown; each of them ends the drains before it
	drained      sync.Cond // wakes callers of ShutDownWithDrain
}

// work is an item that a worker has.
type work struct {
	number uint64        // of the Get
	since  time.Duration // queueMetrics.now of the Get, or 0
}

// keptItems is the number of items for which a queue that becomes empty keeps its map. Tests lower
// it.
var keptItems = 1 << 16

// NewTyped returns a queue. If Config.Metrics.Unfinished is set, it starts a goroutine, which
// ShutDown ends.
func NewTyped[T comparable](config Config[T]) *Typed[T] {
	if config.Order == nil {
		config.Order = DefaultQueue[T]()
	}
	q := &Typed[T]{
		drainProcessingOnly: config.DrainProcessingOnly,
		queue:               config.Order,
		dirty:               map[T]time.Duration{},
		processing:          map[T]work{},
	}
	q.added.L, q.drained.L = &q.mu, &q.mu
	q.metrics = newQueueMetrics(config.Metrics, orRealClock(config.Clock))
	q.metrics.start(q.unfinished)
	return q
}

// Add makes item dirty and queues it, unless it is dirty already or the queue shuts down. While a
// worker has the item, it is dirty without being queued, and the worker's Done queues it.
func (q *Typed[T]) Add(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shuttingDown {
		return
	}
	_, dirty := q.dirty[item]
	_, processing := q.processing[item]
	if dirty {
		if !processing {
			q.queue.Touch(item)
		}
		return
	}
	if !processing {
		q.queue.Push(item)
		q.added.Signal()
	}
	q.dirty[item] = 0
	q.mostDirty = max(q.mostDirty, len(q.dirty))
	if q.metrics != nil {
		q.dirty[item] = q.metrics.added()
	}
}

// Get moves the next item from the queue to the caller, and blocks until there is one. The caller
// must call Done when it has worked on the item. Get returns shutdown = true once the queue is shut
// down and empty.
func (q *Typed[T]) Get() (item T, shutdown bool) {
	return q.GetWithContext(context.Background())
}

// GetWithContext is Get for a worker that also stops when ctx ends: it then returns shutdown =
// true, and the queue keeps its items. If ctx has ended and an item is queued, the item stays.
func (q *Typed[T]) GetWithContext(ctx context.Context) (item T, shutdown bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.queue.Len() == 0 && ctx.Done() != nil { // it can end while this caller waits
		defer context.AfterFunc(ctx, q.wakeAll)()
	}
	for q.queue.Len() == 0 && !q.shuttingDown && ctx.Err() == nil {
		q.added.Wait()
	}
	if ctx.Err() != nil || q.queue.Len() == 0 {
		q.added.Signal() // the item for which this caller was woken is for the next one
		return item, true
	}
	item = q.queue.Pop()
	q.gets++
	added := q.dirty[item]
	delete(q.dirty, item)
	q.processing[item] = work{number: q.gets}
	if q.metrics != nil {
		q.processing[item] = work{q.gets, q.metrics.taken(added)}
	}
	return item, false
}

// wakeAll makes every caller of Get, and every drain, look again.
func (q *Typed[T]) wakeAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.added.Broadcast()
	q.drained.Broadcast()
}

// Done ends the caller's work on item. If the item was added meanwhile, and so is dirty, Done
// queues it again. Done is a no-op for an item that no worker has.
func (q *Typed[T]) Done(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	work, processing := q.processing[item]
	if !processing {
		return
	}
	delete(q.processing, item)
	if q.metrics != nil {
		defer q.metrics.finished(work.since) // even if Config.Order panics
	}
	if q.shuttingDown {
		q.drained.Broadcast() // a drain looks again once mu is unlocked
	}
	if added, dirty := q.dirty[item]; dirty {
		delete(q.dirty, item) // if Config.Order panics, the item is unknown
		q.queue.Push(item)
		q.dirty[item] = added
		q.added.Signal()
	} else if len(q.dirty) == 0 && q.mostDirty > keptItems {
		q.dirty, q.mostDirty = map[T]time.Duration{}, 0 // a built-in map does not shrink
	}
}

// unfinished returns the sum and the maximum of the times for which workers have had their items.
func (q *Typed[T]) unfinished() (total, longest time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.metrics.now()
	for _, work := range q.processing {
		age := now - work.since
		total += age
		longest = max(longest, age)
	}
	return total, longest
}

// Len is the number of queued items. Items that workers have, and items that wait for their time,
// are not queued.
func (q *Typed[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queue.Len()
}

// ShutDown refuses new items. The queued ones are still handed out, then workers get shutdown =
// true. It ends the wait of every ShutDownWithDrain before it. It waits for the goroutine of the
// metrics, but not for workers. It may be called again.
func (q *Typed[T]) ShutDown() {
	q.refuse(true)
	q.metrics.stop()
	q.metrics.released()
}

// ShutDownWithDrain is ShutDown, and waits until no item is queued and no worker has one. It
// therefore needs workers that call Get until it returns shutdown = true. Another ShutDown ends
// the wait.
func (q *Typed[T]) ShutDownWithDrain() {
	q.drain(context.Background(), q.drainProcessingOnly)
}

// drain is ShutDownWithDrain until ctx ends.
func (q *Typed[T]) drain(ctx context.Context, processingOnly bool) {
	shutDowns := q.refuse(false)
	q.metrics.stop()
	defer q.metrics.released()
	defer context.AfterFunc(ctx, q.wakeAll)()

	q.mu.Lock()
	defer q.mu.Unlock()
	isDrained := func() bool {
		return len(q.processing) == 0 && (processingOnly || q.queue.Len() == 0)
	}
	for !isDrained() && q.shutDowns == shutDowns && ctx.Err() == nil {
		q.drained.Wait()
	}
}

// refuse makes Add refuse items and wakes every caller of Get. It returns the number of calls of
// ShutDown.
func (q *Typed[T]) refuse(endDrains bool) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shuttingDown = true
	q.added.Broadcast()
	if endDrains {
		q.shutDowns++
		q.drained.Broadcast()
	}
	return q.shutDowns
}

// ShuttingDown reports whether the queue refuses new items.
func (q *Typed[T]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.shuttingDown
}

// Queue orders the items of a Typed. The Typed calls it under its lock: an implementation needs no
// lock of its own, and must not call the Typed.
type Queue[T comparable] interface {
	// Touch reports that an item that is in the queue was added again.
	Touch(item T)
	// Push adds an item that is not in the queue.
	Push(item T)
	// Len is the number of items in the queue.
	Len() int
	// Pop removes and returns the next item. It is called only if Len is positive.
	Pop() (item T)
}

// DefaultQueue returns the order first in, first out. Other orders can be built around it.
func DefaultQueue[T comparable]() Queue[T] {
	return &fifo[T]{}
}

// keptSlots is the number of slots that a fifo keeps, and eight more for each item in it. Tests
// lower it.
var keptSlots = 4096

// fifo is a slice from which items are taken at the front.
//
//	F1  the queued items are slice[first:], the next one first
//	F2  the slots before first have the zero value, so that a popped item can be collected
type fifo[T comparable] struct {
	slice []T
	first int
}

// Len implements Queue.
func (f *fifo[T]) Len() int { return len(f.slice) - f.first }

// Touch implements Queue: an item keeps its place.
func (f *fifo[T]) Touch(T) {}

// Push implements Queue.
func (f *fifo[T]) Push(item T) { f.slice = append(f.slice, item) }

// Pop implements Queue. It moves the items to the front once half of the slice is free.
func (f *fifo[T]) Pop() T {
	var zero T
	item := f.slice[f.first]
	f.slice[f.first] = zero
	f.first++
	if f.first > len(f.slice)/2 {
		rest, kept := f.slice[f.first:], f.slice[:0]
		if cap(f.slice) > keptSlots+8*len(rest) {
			kept = nil
		}
		kept = append(kept, rest...)
		clear(f.slice[len(kept):])
		f.slice, f.first = kept, 0
	}
	return item
}
