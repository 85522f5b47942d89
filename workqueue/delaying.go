// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"sync"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// TypedDelayingQueue is a queue that can add an item after a delay.
//
//	       AddAfter                  timer is due
//	item ------------> waiting, heap --------------> Typed.Add
//
// A heap under a mutex orders the waiting items by the time when they are due, and a timer is set
// for the first of them. When it fires, addDue adds the due items to the queue. AddAfter never
// blocks. (In client-go a goroutine owns the heap. AddAfter sends to it on the channel
// waitingForAddCh, and blocks while that is full.)
//
//	D1  waiting and heap contain the same items, each once, with the earliest of its times
//	D2  the timer is set for the time of heap[0] or an earlier one, or addDue runs, unless heap is
//	    empty or the queue is stopped
//	D3  once stopped, no timer is set, and heap is empty unless keeps
//
// Add does not cancel a wait: the item is worked on now and again when it is due, unless
// AddSupersedesDelayed is set.
type TypedDelayingQueue[T comparable] struct {
	// ContextInterface is the queue to which due items are added.
	ContextInterface[T]
	retries       func() // Metrics.Retries
	released      func() // Metrics.Released, once
	clock         clock.WithTicker
	logger        klog.Logger
	addSupersedes bool
	stopReports   func()         // of Metrics.Waiting
	timers        sync.WaitGroup // timers that are set, and calls that add items that waited
	shutDown      sync.Once      // ContextInterface.ShutDown

	mu       sync.Mutex
	waiting  map[T]*waitingItem[T]
	heap     waitHeap[T]
	seq      uint64
	stop     func() bool // stops the timer, and reports whether it did; nil: no timer, no addDue
	firesAt  time.Time   // when the timer fires
	stopped  bool        // ShutDown, ShutDownWithDrain, Finish or HandBack was called
	keeps    bool        // for Finish and HandBack: AddAfter still keeps items
	draining int         // calls of the last three of these that have not returned
}

// NewTypedDelayingQueue returns a delaying queue.
func NewTypedDelayingQueue[T comparable](config Config[T]) *TypedDelayingQueue[T] {
	if config.Queue == nil {
		below := config // the other metrics are those of the delaying queue
		below.Metrics.Retries, below.Metrics.Waiting, below.Metrics.Released = nil, nil, nil
		config.Queue = NewTyped(below)
	}
	logger := klog.Background()
	if config.Logger != nil {
		logger = *config.Logger
	}
	c := orRealClock(config.Clock)
	q := &TypedDelayingQueue[T]{
		ContextInterface: config.Queue,
		retries:          orNothing(config.Metrics.Retries),
		released:         sync.OnceFunc(orNothing(config.Metrics.Released)),
		clock:            c,
		logger:           logger,
		addSupersedes:    config.AddSupersedesDelayed,
		waiting:          map[T]*waitingItem[T]{},
	}
	q.stopReports = q.report(config.Metrics.Waiting)
	return q
}

func orRealClock(c clock.WithTicker) clock.WithTicker {
	if c == nil {
		return clock.RealClock{}
	}
	return c
}

func orNothing(f func()) func() {
	if f == nil {
		return func() {}
	}
	return f
}

// Add queues item now. If the item also waits for a time, it is added again then, unless
// AddSupersedesDelayed is set.
func (q *TypedDelayingQueue[T]) Add(item T) {
	if q.addSupersedes {
		q.AddWithPriority(item, 0)
		return
	}
	q.ContextInterface.Add(item)
}

// AddAfter adds item once duration has passed, or at once if duration is not positive. An item that
// waits already is added at the earlier of the two times, once. AddAfter is ignored after ShutDown,
// but see Finish. It does not block.
func (q *TypedDelayingQueue[T]) AddAfter(item T, duration time.Duration) {
	q.AddAfterWithPriority(item, duration, 0)
}

// AddAfterWithPriority is AddAfter with a priority, if Config.Queue is a Prioritizer. The highest
// priority of an item that waits counts.
func (q *TypedDelayingQueue[T]) AddAfterWithPriority(
	item T, duration time.Duration, priority int,
) {
	if q.ShuttingDown() && !q.isKeeping() {
		return
	}
	q.retries()
	if duration <= 0 {
		q.AddWithPriority(item, priority)
		return
	}
	due := q.clock.Now().Add(duration)

	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.stopped || q.keeps {
		q.waitLocked(item, due, priority)
		q.setTimerLocked()
	}
}

// CancelDelayed ends item's wait, and reports whether item waited. An item that was added to the
// queue meanwhile stays there.
func (q *TypedDelayingQueue[T]) CancelDelayed(item T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	w, waits := q.waiting[item]
	if waits {
		q.removeLocked(w)
	}
	return waits
}

// setTimerLocked keeps D2.
func (q *TypedDelayingQueue[T]) setTimerLocked() {
	if len(q.heap) == 0 || q.stopped {
		return
	}
	due := q.heap[0].due
	if q.stop != nil {
		if !due.Before(q.firesAt) || !q.stop() {
			return // the timer fires early enough, or has fired
		}
		q.timers.Done()
		q.stop = nil
	}
	q.stop = afterFunc(q.clock, due.Sub(q.clock.Now()), q.addDue)
	q.firesAt = due
	q.timers.Add(1)
}

// addDue runs when the timer fires. It adds the due items to the queue and sets the next timer. If
// Config.Queue panics, the crash handlers get the panic. If the process survives, that item is lost
// and the others are not.
func (q *TypedDelayingQueue[T]) addDue() {
	defer q.timers.Done()
	defer utilruntime.HandleCrashWithLogger(q.logger)
	defer func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.stop = nil
		q.setTimerLocked()
	}()
	for {
		item, priority, ok := q.takeDue()
		if !ok {
			return
		}
		q.addNow(item, priority)
	}
}

// ShutDown drops the waiting items and shuts the queue down. When it returns, no goroutine of the
// delaying queue runs. It may be called again: the queue is shut down once, and again only to end a
// drain.
func (q *TypedDelayingQueue[T]) ShutDown() {
	draining := q.drop(0)
	q.stopReports()
	first := false
	q.shutDown.Do(func() {
		first = true
		q.ContextInterface.ShutDown()
	})
	if draining > 0 && !first {
		q.ContextInterface.ShutDown()
	}
	q.timers.Wait()
	q.released()
}

// ShutDownWithDrain drops the waiting items and drains the queue: see Typed.
func (q *TypedDelayingQueue[T]) ShutDownWithDrain() {
	q.drop(1)
	defer q.endDrain()
	q.stopReports()
	q.ContextInterface.ShutDownWithDrain()
	q.timers.Wait()
	q.released()
}

// drop drops the waiting items. It returns the number of drains in progress.
func (q *TypedDelayingQueue[T]) drop(drains int) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopLocked()
	q.keeps = false
	q.draining += drains
	return q.draining
}

// stopLocked stops the timer, and removes and returns the waiting items.
func (q *TypedDelayingQueue[T]) stopLocked() (waiting waitHeap[T]) {
	waiting = q.heap
	q.stopped = true
	q.waiting, q.heap = map[T]*waitingItem[T]{}, nil
	if q.stop != nil && q.stop() {
		q.timers.Done()
		q.stop = nil
	}
	return waiting
}

func (q *TypedDelayingQueue[T]) endDrain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.draining--
}

// afterFunc runs f in a goroutine after d. stop prevents that, and reports whether it did; if not,
// f has been started. stop is called at most once.
//
// A fake clock may call back under its own lock, so f never runs in its caller. Its timer may not
// be reset after it fired, so every call makes a new one. It fires only when the clock is stepped,
// so f is started at once if d is not positive.
func afterFunc(c clock.WithTicker, d time.Duration, f func()) (stop func() bool) {
	if d <= 0 {
		go f()
		return func() bool { return false }
	}
	if c, ok := c.(clock.WithDelayedExecution); ok {
		return c.AfterFunc(d, func() { go f() }).Stop
	}
	timer, quit := c.NewTimer(d), make(chan struct{})
	go func() {
		select {
		case <-timer.C():
			f()
		case <-quit:
		}
	}()
	return func() bool {
		stopped := timer.Stop()
		if stopped {
			close(quit)
		}
		return stopped
	}
}
