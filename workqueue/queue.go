// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Typed is the queue of items to work on now.
//
//	        Add                    Get                     Done
//	unknown ---> dirty, in queue -----> processing ----------------> unknown
//	                    ^                   |
//	                    |                   | Add
//	                    |                   v
//	                    +------- processing and dirty
//	                      Done
//
// The dirty set contains the items that have to be worked on, the processing set those that workers
// have, and the queue orders the items that may be handed out. However often an item is added, it
// is queued once, and one worker has it.
//
//	Q1  items contains exactly the items that are dirty, processing or both
//	Q2  queue contains exactly the items that are dirty and not processing, each once
//	Q3  no caller of Get waits while the queue has an item for it: each Push wakes one waiting
//	    caller, and a caller that was woken and leaves without an item wakes the next
type Typed[T comparable] struct {
	metrics             *queueMetrics[T] // nil: none
	drainProcessingOnly bool

	mu           sync.Mutex
	items        map[T]entry
	mostItems    int // since items was allocated
	queue        Queue[T]
	gets         uint32    // number of calls of Get that returned an item, modulo 2^32
	added        sync.Cond // wakes callers of Get
	shuttingDown bool
	shutDowns    int       // number of calls of ShutDown; each of them ends the drains before it
	drained      sync.Cond // wakes callers of ShutDownWithDrain
}

// entry says in which of the two sets an item is.
type entry struct {
	dirty, processing bool
	get               uint32        // if processing: the number of the Get that returned the item
	addedAt           time.Duration // if dirty: when the item was added, for metrics
}

// keptItems is the number of items for which a queue that becomes empty keeps its map.
const keptItems = 1 << 16

// TypedQueueConfig configures NewTypedWithConfig. The zero value makes a FIFO queue without
// metrics.
type TypedQueueConfig[T comparable] struct {
	// Name of the queue in its metrics. A queue without a name has no metrics.
	Name string
	// MetricsProvider makes the queue's metrics. Nil means no metrics.
	MetricsProvider MetricsProvider
	// Clock measures for the metrics. Nil means the real clock.
	Clock clock.WithTicker
	// Queue is the order in which items are handed out. Nil means first in, first out.
	Queue Queue[T]
	// DrainProcessingOnly makes ShutDownWithDrain wait until no worker has an item, whether items
	// are queued or not, as client-go's does. By default it also waits until no item is queued,
	// which needs workers that go on calling Get.
	DrainProcessingOnly bool
}

// NewTyped returns a FIFO queue without metrics.
func NewTyped[T comparable]() *Typed[T] {
	return NewTypedWithConfig(TypedQueueConfig[T]{})
}

// NewTypedWithConfig returns a queue. With metrics it starts a goroutine, which ShutDown ends.
func NewTypedWithConfig[T comparable](config TypedQueueConfig[T]) *Typed[T] {
	if config.Queue == nil {
		config.Queue = DefaultQueue[T]()
	}
	q := &Typed[T]{
		drainProcessingOnly: config.DrainProcessingOnly,
		items:               map[T]entry{},
		queue:               config.Queue,
	}
	q.added.L, q.drained.L = &q.mu, &q.mu
	q.metrics = startQueueMetrics[T](
		config.MetricsProvider, config.Name, orRealClock(config.Clock), &q.mu)
	return q
}

func orRealClock(c clock.WithTicker) clock.WithTicker {
	if c == nil {
		return clock.RealClock{}
	}
	return c
}

// Add makes item dirty and queues it, unless it is dirty already or the queue shuts down. While a
// worker has the item, it is dirty without being queued, and the worker's Done queues it.
func (q *Typed[T]) Add(item T) {
	if q.add(item) && q.metrics != nil {
		q.metrics.added()
	}
}

func (q *Typed[T]) add(item T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shuttingDown {
		return false
	}
	e, now := q.items[item], q.now()
	if e.dirty {
		if !e.processing {
			q.queue.Touch(item)
		}
		return false
	}
	if !e.processing {
		q.queue.Push(item) // first: if an owner's Queue panics, items is as it was
		q.added.Signal()
	}
	e.dirty, e.addedAt = true, now
	q.items[item] = e
	q.mostItems = max(q.mostItems, len(q.items))
	return true
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
	item, waited, ok := q.get(ctx)
	if ok && q.metrics != nil {
		q.reportGet(item, waited)
	}
	return item, !ok
}

// reportGet queues item again if a metric panics, because the caller does not get it then.
func (q *Typed[T]) reportGet(item T, waited time.Duration) {
	reported := false
	defer func() {
		if !reported {
			q.add(item)
			q.done(item)
		}
	}()
	q.metrics.taken(waited)
	reported = true
}

func (q *Typed[T]) get(ctx context.Context) (item T, waited time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.queue.Len() == 0 && !q.shuttingDown {
		defer func() {
			if !ok { // ctx ended, or an owner's Queue panics: the wake-up is for the next caller
				q.added.Signal()
			}
		}()
		q.waitLocked(ctx)
	}
	if ctx.Err() != nil || q.queue.Len() == 0 {
		return item, 0, false
	}
	now := q.now()
	item = q.queue.Pop()
	if q.metrics != nil {
		waited = q.metrics.begin(item, q.items[item], now)
	}
	q.gets++
	q.items[item] = entry{processing: true, get: q.gets}
	return item, waited, true
}

// waitLocked waits until the queue has an item, shuts down, or ctx ends. It unlocks mu meanwhile.
func (q *Typed[T]) waitLocked(ctx context.Context) {
	if ctx.Done() != nil { // it can end
		stop := context.AfterFunc(ctx, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.added.Broadcast()
		})
		defer stop()
	}
	for q.queue.Len() == 0 && !q.shuttingDown && ctx.Err() == nil {
		q.added.Wait()
	}
}

// Done ends the caller's work on item. If the item was added meanwhile, and so is dirty, Done
// queues it again. Done is a no-op for an item that no worker has.
func (q *Typed[T]) Done(item T) {
	if worked, ok := q.done(item); ok && q.metrics != nil {
		q.metrics.finished(worked)
	}
}

func (q *Typed[T]) done(item T) (worked time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e, now := q.items[item], q.now()
	if !e.processing {
		return 0, false
	}
	if e.dirty {
		q.queue.Push(item)
		q.added.Signal()
		q.items[item] = entry{dirty: true, addedAt: e.addedAt}
	} else {
		delete(q.items, item)
	}
	if q.metrics != nil {
		worked = q.metrics.end(item, now)
	}
	if len(q.items) == 0 && q.mostItems > keptItems {
		q.items, q.mostItems = map[T]entry{}, 0 // a map of Go's does not shrink
	}
	if q.shuttingDown && q.isDrainedLocked() {
		q.drained.Broadcast()
	}
	return worked, true
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
	q.metrics.release()
}

// ShutDownWithDrain is ShutDown, and waits until no item is queued and no worker has one. It
// therefore needs workers that go on calling Get and Done. Another ShutDown ends the wait.
func (q *Typed[T]) ShutDownWithDrain() {
	shutDowns := q.refuse(false)
	q.metrics.stop()
	defer q.metrics.release()

	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.isDrainedLocked() && q.shutDowns == shutDowns {
		q.drained.Wait()
	}
}

// isDrainedLocked reports whether no item is left, or none that is processing: by Q1 and Q2, all
// items are then in the queue.
func (q *Typed[T]) isDrainedLocked() bool {
	return len(q.items) == 0 || q.drainProcessingOnly && len(q.items) <= q.queue.Len()
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

// now is the time that metrics measure, or 0 without metrics.
func (q *Typed[T]) now() time.Duration {
	if q.metrics == nil {
		return 0
	}
	return q.metrics.now()
}
