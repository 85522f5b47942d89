// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"context"
	"sync"
	"time"
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
// A dirty item has to be worked on, a worker has a processing one, and the queue orders the items
// that may be handed out. However often an item is added, it is queued once, and one worker has it.
// One map contains the states of all items, where client-go has two sets, dirty and processing.
//
//	Q1  the queue contains exactly the items that are dirty and not processing, each once
//	Q2  an item is processing exactly if a worker has it; items contains no unknown item
//	Q3  no caller of Get waits while the queue has an item for it: each Push is followed by a
//	    Signal, and a caller that was woken and leaves without an item wakes the next
//
// The Signal follows once mu is unlocked: waking a goroutine costs more than the rest of Add.
type Typed[T comparable] struct {
	metrics             *queueMetrics // nil: none
	drainProcessingOnly bool

	mu           sync.Mutex
	items        map[T]state
	mostItems    int // since items was allocated
	queue        Queue[T]
	processing   int                 // number of items that are processing
	gets         uint32              // number of calls of Get that returned an item
	addedAt      map[T]time.Duration // of dirty items, for metrics; nil without
	startedAt    map[T]time.Duration // of processing items, for metrics; nil without
	added        sync.Cond           // wakes callers of Get
	shuttingDown bool
	shutDowns    int       // number of calls of ShutDown; each of them ends the drains before it
	drained      sync.Cond // wakes callers of ShutDownWithDrain
}

// state is what the queue knows about an item. The zero state is that of an unknown item.
type state struct {
	dirty      bool
	processing bool
	get        uint32 // the number of the Get that returned the item
}

// keptItems is the number of items for which a queue that becomes empty keeps its map.
const keptItems = 1 << 16

// NewTyped returns a queue. If Config.Metrics.Unfinished is set, it starts a goroutine, which
// ShutDown ends.
func NewTyped[T comparable](config Config[T]) *Typed[T] {
	if config.Order == nil {
		config.Order = DefaultQueue[T]()
	}
	q := &Typed[T]{
		drainProcessingOnly: config.DrainProcessingOnly,
		items:               map[T]state{},
		queue:               config.Order,
	}
	q.added.L, q.drained.L = &q.mu, &q.mu
	q.metrics = newQueueMetrics(config.Metrics, orRealClock(config.Clock))
	if q.metrics != nil {
		q.addedAt, q.startedAt = map[T]time.Duration{}, map[T]time.Duration{}
		q.metrics.start(q.ages)
	}
	return q
}

// Add makes item dirty and queues it, unless it is dirty already or the queue shuts down. While a
// worker has the item, it is dirty without being queued, and the worker's Done queues it.
func (q *Typed[T]) Add(item T) {
	added, queued := q.add(item, q.metrics.now())
	if queued {
		q.added.Signal()
	}
	if added {
		q.metrics.added()
	}
}

func (q *Typed[T]) add(item T, now time.Duration) (added, queued bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shuttingDown {
		return false, false
	}
	s := q.items[item]
	if s.dirty {
		if !s.processing {
			q.queue.Touch(item)
		}
		return false, false
	}
	if !s.processing {
		q.queue.Push(item)
		queued = true
	}
	s.dirty = true
	q.items[item] = s
	q.mostItems = max(q.mostItems, len(q.items))
	if q.addedAt != nil {
		q.addedAt[item] = now
	}
	return true, queued
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
	item, waited, ok := q.get(ctx, q.metrics.now())
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
			q.add(item, q.metrics.now())
			q.done(item, 0)
			q.added.Signal()
		}
	}()
	q.metrics.taken(waited)
	reported = true
}

func (q *Typed[T]) get(
	ctx context.Context, now time.Duration,
) (item T, waited time.Duration, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.queue.Len() == 0 && !q.shuttingDown {
		defer func() {
			if !ok { // ctx ended, or Config.Order panics: the wake-up is for the next caller
				q.added.Signal()
			}
		}()
		q.waitLocked(ctx)
		now = q.metrics.now()
	}
	if ctx.Err() != nil || q.queue.Len() == 0 {
		return item, 0, false
	}
	item = q.queue.Pop()
	q.gets++
	q.items[item] = state{processing: true, get: q.gets}
	q.processing++
	if q.addedAt != nil {
		waited = max(now-q.addedAt[item], 0) // Add may have read the clock later
		delete(q.addedAt, item)
		q.startedAt[item] = now
	}
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
	worked, ended, queued := q.done(item, q.metrics.now())
	if queued {
		q.added.Signal()
	}
	if ended {
		q.metrics.finished(worked)
	}
}

func (q *Typed[T]) done(
	item T, now time.Duration,
) (worked time.Duration, ended, queued bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.items[item]
	if !s.processing {
		return 0, false, false
	}
	if s.dirty {
		q.queue.Push(item)
		q.items[item] = state{dirty: true}
	} else {
		delete(q.items, item)
		if len(q.items) == 0 && q.mostItems > keptItems {
			q.items, q.mostItems = map[T]state{}, 0 // a built-in map does not shrink
		}
	}
	q.processing--
	if q.startedAt != nil {
		worked = now - q.startedAt[item]
		delete(q.startedAt, item)
	}
	if q.shuttingDown && q.isDrainedLocked() {
		q.drained.Broadcast()
	}
	return worked, true, s.dirty
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
	shutDowns := q.refuse(false)
	q.metrics.stop()
	defer q.metrics.released()

	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.isDrainedLocked() && q.shutDowns == shutDowns {
		q.drained.Wait()
	}
}

func (q *Typed[T]) isDrainedLocked() bool {
	// An item that Config.Order hands out twice is counted twice.
	return len(q.items) == 0 ||
		q.processing == 0 && (q.drainProcessingOnly || q.queue.Len() == 0)
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

// ages returns the sum and the maximum of the times for which workers have had their items.
func (q *Typed[T]) ages(now time.Duration) (total, longest time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, startedAt := range q.startedAt {
		age := max(now-startedAt, 0)
		total += age
		longest = max(longest, age)
	}
	return total, longest
}
