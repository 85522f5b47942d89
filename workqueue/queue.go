// SPDX-License-Identifier: Apache-2.0

// Package workqueue never hands one key to two workers at once.
//
//	informer -> handlers -> [workqueue] -> controller workers
//
// Three queues, each around the one before: Typed (now), TypedDelayingQueue (later), TypedRateLimitingQueue (as late as a
// TypedRateLimiter says). Beside them ParallelizeUntil, which spreads independent pieces of work over workers.
//
// Read interface.go, queue.go, entry.go, table.go, sleeper.go, shutdown.go; delaying.go, waitheap.go, alarm.go;
// ratelimiting.go, limiter.go, the limiters, failures.go; metrics.go, snapshot.go. Then go test -v -run Story ./workqueue.
//
// Items are map keys: two items are the same if ==. Queue values (a "namespace/name" string, a struct of strings), not
// pointers: two pointers to equal structs are two items.
//
// Goroutines: any number of adders and workers. Of the package's own, one in a queue with metrics, and one for the moment
// in which delayed items come due (with a clock that cannot call back, while they wait); ShutDown ends both. Locking: one
// mutex in Typed, one in TypedDelayingQueue, one in each limiter; none is held while another of them is taken, or while
// metrics are called.
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
	born    time.Time

	mu           sync.Mutex
	entries      table[T, *entry[T]]
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
		born:    ticking.Now(),
		entries: newTable[T, *entry[T]](),
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
	hash := q.entries.hash(item)
	q.lock()
	added, next := q.addLocked(item, hash)
	q.mu.Unlock()
	next.wakeUp() // before a metric, which may be slow or panic
	if added && q.metrics != nil {
		q.metrics.added()
	}
}

func (q *Typed[T]) addLocked(item T, hash uint64) (added bool, next *sleeper) {
	if q.shuttingDown {
		return false, nil
	}
	e := q.entries.find(item, hash)
	if e == nil {
		q.pushLocked(q.enterLocked(item, hash))
		return true, q.nextSleeperLocked()
	}
	switch e.phase {
	case processing:
		e.phase = again
		e.addedAt = q.now()
		return true, nil
	case queued:
		if q.order != nil {
			q.callOrderLocked(func() { q.order.Touch(item) })
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
	hash := q.entries.hash(item)
	q.lock()
	worked, next, ok := q.doneLocked(item, hash)
	q.mu.Unlock()
	next.wakeUp() // before a metric, as in Add
	if ok && q.metrics != nil {
		q.metrics.finished(worked)
	}
}

func (q *Typed[T]) doneLocked(item T, hash uint64) (worked time.Duration, next *sleeper, ok bool) {
	e := q.entries.find(item, hash)
	if e == nil || e.phase == queued {
		return 0, nil, false
	}
	q.working.remove(e)
	worked = q.now() - e.startedAt
	if e.phase == again {
		e.phase = queued
		q.pushLocked(e)
		return worked, q.nextSleeperLocked(), true
	}
	q.leaveLocked(e)
	if q.entries.len == 0 {
		q.drained.Broadcast()
	}
	return worked, nil, true
}

// Len is the number of queued items: not those that a worker has, nor those that wait for their time.
func (q *Typed[T]) Len() int {
	q.mu.Lock()
	n := q.readyLenLocked()
	q.mu.Unlock()
	return n
}

func (q *Typed[T]) readyLenLocked() int {
	n := q.ready.len
	if q.order != nil {
		q.callOrderLocked(func() { n = q.order.Len() })
	}
	return n
}

func (q *Typed[T]) pushLocked(e *entry[T]) {
	if q.order != nil {
		q.callOrderLocked(func() { q.order.Push(e.item) })
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
	var item T
	q.callOrderLocked(func() { item = q.order.Pop() })
	hash := q.entries.hash(item)
	e := q.entries.find(item, hash)
	switch {
	case e == nil:
		e = q.enterLocked(item, hash)
	case e.phase != queued:
		q.working.remove(e)
	}
	return e
}

// callOrderLocked calls the owner's order. If that panics, the lock is released on the way out: the callers do not defer
// their Unlock, which every queue would pay for.
func (q *Typed[T]) callOrderLocked(call func()) {
	returned := false
	defer func() {
		if !returned {
			q.mu.Unlock()
		}
	}()
	call()
	returned = true
}

// How often a goroutine counts before it looks at the lock again: twice as often each time, some 20 µs in all.
const (
	minPatience = 1 << 8
	maxPatience = 1 << 15
)

// lock is mu.Lock for what many goroutines do all the time and what takes less than 100 ns. One that comes too late stays
// away for a while, off the memory that the others use, and they get on at full speed; only then does it sleep. Were it to
// sleep at once, each Unlock would wake somebody who mostly comes too late again.
func (q *Typed[T]) lock() {
	for patience := minPatience; patience <= maxPatience; patience *= 2 {
		if q.mu.TryLock() {
			return
		}
		for range patience {
		}
	}
	q.mu.Lock()
}

// now is the age of the queue, if somebody will want to know.
func (q *Typed[T]) now() time.Duration {
	if q.metrics == nil {
		return 0
	}
	return q.clock.Since(q.born)
}
