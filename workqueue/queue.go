// SPDX-License-Identifier: Apache-2.0

// Package workqueue never hands one key to two workers at once.
//
//	informer -> handlers -> [workqueue] -> controller workers
//
// Three queues, each around the one before: Typed (now), TypedDelayingQueue (later), TypedRateLimitingQueue (as late as a
// TypedRateLimiter says). Beside them ParallelizeUntil, which spreads independent pieces of work over workers.
//
// Read interface.go, queue.go, sleeper.go, shutdown.go, delaying.go, waitheap.go, ratelimiting.go, limiter.go and the
// limiters, metrics.go; then go test -v -run Story ./workqueue.
//
// Items are map keys: two items are the same if ==. Queue values (a "namespace/name" string, a struct of strings), not
// pointers: two pointers to equal structs are two items.
//
// Goroutines: any number of adders and workers; none of the package's own, but one in a queue with metrics (ends in
// ShutDown), and one for the moment in which delayed items come due. Locking: one mutex in Typed, one in
// TypedDelayingQueue, one in each limiter; none is held while another is taken or while metrics are called.
//
// Source: util/workqueue/queue.go Typed, util/workqueue/delaying_queue.go TypedDelayingInterface,
// util/workqueue/rate_limiting_queue.go TypedRateLimitingInterface
package workqueue

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// phase is where an item stands between Add and Done.
type phase uint8

const (
	queued     phase = iota // waits for a worker
	processing              // a worker has it
	again                   // a worker has it and it was added since: Done queues it once more
)

// Typed is the queue of items to work on now.
//
// An item travels through three phases and is unknown outside them:
//
//	unknown --Add--> queued --Get--> processing --Done--> unknown
//	                   ^                 | Add
//	                   +-----Done----- again
//
// so that however often an item is added, it is queued at most once and no two workers have it at once.
//
//	Q1  entries holds exactly the items that are queued, processing or again
//	Q2  the ready line holds exactly the queued items, each once, in the order in which they were queued
//	Q3  the working list holds exactly the items that are processing or again, in the order in which workers got them
//	Q4  an item is ready and a worker sleeps  =>  a worker that was woken is on its way
//
// (Told with sets, as it often is: dirty = queued or again; processing = processing or again; queue = the ready line.)
type Typed[T comparable] struct {
	metrics *queueMetrics // nil: none
	clock   clock.PassiveClock

	mu           sync.Mutex
	entries      map[T]*entry[T]
	ready        line[T]
	order        Queue[T] // in place of ready, if the owner brought an order of its own
	working      line[T]
	unused       line[T] // entries to use again
	asleep       []*sleeper
	beds         []*sleeper // sleepers to use again
	waking       bool       // a woken worker is on its way
	shuttingDown bool
	released     int       // how often ShutDown was called: each call releases the drains before it
	drained      sync.Cond // entries became empty, or released grew
}

// TypedQueueConfig is what NewTypedWithConfig can be told. The zero value is a FIFO queue without metrics.
type TypedQueueConfig[T comparable] struct {
	// Name of the queue in its metrics. Without a name there are none.
	Name string
	// MetricsProvider makes the queue's metrics. nil: none.
	MetricsProvider MetricsProvider
	// Clock measures for the metrics. nil: the real one.
	Clock clock.WithTicker
	// Queue is the order in which items are handed out. nil: first in, first out.
	Queue Queue[T]
}

// NewTyped makes a FIFO queue without metrics.
func NewTyped[T comparable]() *Typed[T] {
	return NewTypedWithConfig(TypedQueueConfig[T]{})
}

// NewTypedWithConfig makes a queue. With metrics it starts a goroutine, which ShutDown ends.
func NewTypedWithConfig[T comparable](config TypedQueueConfig[T]) *Typed[T] {
	ticking := orRealClock(config.Clock)
	q := &Typed[T]{
		metrics: newQueueMetrics(config.MetricsProvider, config.Name),
		clock:   ticking,
		entries: map[T]*entry[T]{},
		order:   config.Queue,
	}
	q.drained.L = &q.mu
	if q.metrics != nil {
		q.metrics.start(ticking, q.unfinished)
	}
	return q
}

func orRealClock(c clock.WithTicker) clock.WithTicker {
	if c == nil {
		return clock.RealClock{}
	}
	return c
}

// Add queues item unless it is queued already or the queue shuts down. If a worker has it, its Done queues it.
func (q *Typed[T]) Add(item T) {
	added, next := q.add(item)
	if added && q.metrics != nil {
		q.metrics.added()
	}
	next.wakeUp()
}

func (q *Typed[T]) add(item T) (added bool, next *sleeper) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shuttingDown {
		return false, nil
	}
	e := q.entries[item]
	if e == nil {
		e = q.newEntryLocked(item)
		e.addedAt = q.nowLocked()
		q.pushLocked(e)
		return true, q.nextSleeperLocked()
	}
	switch e.phase {
	case processing:
		e.phase = again
		e.addedAt = q.nowLocked()
		return true, nil
	case queued:
		if q.order != nil {
			q.order.Touch(item)
		}
	}
	return false, nil
}

// Get hands out the next item, and sleeps until there is one. The caller works on it and must then call Done.
// shutdown is true once the queue is shut down and empty: the worker should end.
func (q *Typed[T]) Get() (item T, shutdown bool) {
	return q.get(nil)
}

// GetWithContext is Get for a worker that also stops when ctx does: then shutdown is true, and whatever is queued stays
// queued. A ctx that is done wins over an item that is ready.
func (q *Typed[T]) GetWithContext(ctx context.Context) (item T, shutdown bool) {
	return q.get(ctx.Done())
}

// Done ends the caller's work on item. If it was added meanwhile, it is queued again. Of an item that no worker has, Done
// is ignored.
func (q *Typed[T]) Done(item T) {
	worked, next, ok := q.done(item)
	if ok && q.metrics != nil {
		q.metrics.finished(worked)
	}
	next.wakeUp()
}

func (q *Typed[T]) done(item T) (worked time.Duration, next *sleeper, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.entries[item]
	if e == nil || e.phase == queued {
		return 0, nil, false
	}
	q.working.remove(e)
	worked = q.sinceLocked(e.startedAt)
	if e.phase == again {
		e.phase = queued
		q.pushLocked(e)
		return worked, q.nextSleeperLocked(), true
	}
	delete(q.entries, item)
	q.reuseLocked(e)
	if len(q.entries) == 0 {
		q.drained.Broadcast()
	}
	return worked, nil, true
}

// Len is the number of queued items: not those that a worker has, nor those that wait for their time.
func (q *Typed[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.readyLenLocked()
}

func (q *Typed[T]) readyLenLocked() int {
	if q.order != nil {
		return q.order.Len()
	}
	return q.ready.len
}

func (q *Typed[T]) pushLocked(e *entry[T]) {
	if q.order != nil {
		q.order.Push(e.item)
		return
	}
	q.ready.push(e)
}

// popLocked takes the next item out of the ready line. An order of the owner's own may pop an item that it was never
// given, or one that a worker has; the worker gets it, and it counts as processing from then on.
func (q *Typed[T]) popLocked() *entry[T] {
	if q.order == nil {
		e := q.ready.first
		q.ready.remove(e)
		return e
	}
	item := q.order.Pop()
	e := q.entries[item]
	switch {
	case e == nil:
		e = q.newEntryLocked(item)
		e.addedAt = q.nowLocked()
	case e.phase != queued:
		q.working.remove(e)
	}
	return e
}

// nowLocked reads the clock if somebody will want to know.
func (q *Typed[T]) nowLocked() time.Time {
	if q.metrics == nil {
		return time.Time{}
	}
	return q.clock.Now()
}

func (q *Typed[T]) sinceLocked(start time.Time) time.Duration {
	if q.metrics == nil {
		return 0
	}
	return q.clock.Since(start)
}
