// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"context"
	"math"
	"sync"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// TypedDelayingQueue is a queue to which items can be added later.
//
//	       AddAfter                  timer is due
//	item ------------> waiting, heap --------------> TypedInterface.Add
//
// A heap under a mutex orders the waiting items by the time at which they are due, and a timer is
// set for the first of them. When it fires, addDue adds the due items to the queue. AddAfter never
// blocks. (In client-go a goroutine owns the heap. AddAfter sends to it on the channel
// waitingForAddCh, and blocks while that is full.)
//
//	D1  waiting and heap contain the same items, each once, with the earliest of its times
//	D2  the timer is set for the time of heap[0] or an earlier one, or addDue runs, unless heap is
//	    empty
//	D3  after ShutDown heap is empty and no timer is set
//
// Add does not cancel a wait: the item is worked on now and again when it is due, unless
// AddSupersedesDelayed is set.
type TypedDelayingQueue[T comparable] struct {
	// TypedInterface is the queue to which due items are added.
	TypedInterface[T]
	retries       CounterMetric // nil: none
	release       func()        // releases retries
	clock         clock.WithTicker
	start         time.Time
	logger        klog.Logger
	addSupersedes bool
	timers        sync.WaitGroup // timers that are set and calls of addDue
	shutDown      sync.Once      // TypedInterface.ShutDown

	mu       sync.Mutex
	waiting  itemMap[T]
	heap     waitHeap[T]
	seq      uint64
	stop     func() bool   // stops the timer, and reports whether it did; nil: no timer, no addDue
	firesAt  time.Duration // when the timer fires, since start
	stopped  bool          // ShutDown or ShutDownWithDrain was called
	draining int           // calls of ShutDownWithDrain that have not returned
}

// TypedDelayingQueueConfig configures NewTypedDelayingQueueWithConfig. The zero value makes a
// delaying FIFO queue without metrics.
type TypedDelayingQueueConfig[T comparable] struct {
	// Logger is for the report of a panic of Queue.Add. Nil means klog's.
	Logger *klog.Logger
	// Name of the queue in its metrics. A queue without a name has no metrics.
	Name string
	// MetricsProvider makes the queue's metrics. Nil means no metrics.
	MetricsProvider MetricsProvider
	// Clock decides when an item is due. Nil means the real clock.
	Clock clock.WithTicker
	// Queue is the queue to which due items are added. Nil means a new Typed with the name, metrics
	// and clock above.
	Queue TypedInterface[T]
	// AddSupersedesDelayed makes Add, and AddAfter without a delay, cancel the item's wait, so that
	// the item is worked on once.
	AddSupersedesDelayed bool
}

// NewTypedDelayingQueue returns a delaying FIFO queue without metrics.
func NewTypedDelayingQueue[T comparable]() *TypedDelayingQueue[T] {
	return NewTypedDelayingQueueWithConfig(TypedDelayingQueueConfig[T]{})
}

// NewTypedDelayingQueueWithConfig returns a delaying queue.
func NewTypedDelayingQueueWithConfig[T comparable](
	config TypedDelayingQueueConfig[T],
) *TypedDelayingQueue[T] {
	if config.Queue == nil {
		config.Queue = NewTypedWithConfig(TypedQueueConfig[T]{
			Name:            config.Name,
			MetricsProvider: config.MetricsProvider,
			Clock:           config.Clock,
		})
	}
	logger := klog.Background()
	if config.Logger != nil {
		logger = *config.Logger
	}
	c := orRealClock(config.Clock)
	return &TypedDelayingQueue[T]{
		TypedInterface: config.Queue,
		retries:        newRetriesMetric(config.MetricsProvider, config.Name),
		release: sync.OnceFunc(func() {
			releaseMetrics(config.MetricsProvider, config.Name)
		}),
		clock:         c,
		start:         c.Now(),
		logger:        logger,
		addSupersedes: config.AddSupersedesDelayed,
		waiting:       newItemMap[T](),
	}
}

// Add queues item now. If the item also waits for a time, it is added again then, unless
// AddSupersedesDelayed is set.
func (q *TypedDelayingQueue[T]) Add(item T) {
	if q.addSupersedes {
		q.CancelDelayed(item)
	}
	q.TypedInterface.Add(item)
}

// AddAfter adds item once duration has passed, or at once if duration is not positive. An item that
// waits already is added at the earlier of the two times, once. AddAfter is ignored after ShutDown.
// It does not block.
func (q *TypedDelayingQueue[T]) AddAfter(item T, duration time.Duration) {
	if q.ShuttingDown() {
		return
	}
	if q.retries != nil {
		q.retries.Inc()
	}
	if duration <= 0 {
		q.Add(item)
		return
	}
	now := q.now()
	due := now + min(duration, math.MaxInt64-now)

	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.stopped {
		q.waitLocked(item, due)
		q.setTimerLocked()
	}
}

// CancelDelayed ends item's wait, and reports whether item waited. An item that was added to the
// queue meanwhile stays there.
func (q *TypedDelayingQueue[T]) CancelDelayed(item T) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.waiting.get(item)
	if w == nil {
		return false
	}
	q.removeLocked(w)
	return true
}

func (q *TypedDelayingQueue[T]) now() time.Duration { return q.clock.Since(q.start) }

// setTimerLocked keeps D2.
func (q *TypedDelayingQueue[T]) setTimerLocked() {
	if len(q.heap) == 0 {
		return
	}
	due := q.heap[0].due
	if q.stop != nil {
		if due >= q.firesAt || !q.stop() {
			return // the timer fires early enough, or has fired
		}
		q.timers.Done()
		q.stop = nil
	}
	q.stop = afterFunc(q.clock, due-q.now(), q.addDue)
	q.firesAt = due
	q.timers.Add(1)
}

// addDue is what the timer starts. It adds the due items to the queue and sets the next timer. If
// an owner's queue panics, the panic goes to the crash handlers. If those let the process live,
// that item is lost and the others are not.
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
		item, ok := q.takeDue()
		if !ok {
			return
		}
		q.TypedInterface.Add(item)
	}
}

// GetWithContext is that of Typed: Get for a worker that also stops when ctx ends. If an owner's
// Queue has no such method, ctx is checked only before the wait.
func (q *TypedDelayingQueue[T]) GetWithContext(ctx context.Context) (item T, shutdown bool) {
	return getWithContext(ctx, q.TypedInterface)
}

func getWithContext[T comparable](
	ctx context.Context, queue TypedInterface[T],
) (item T, shutdown bool) {
	if q, ok := queue.(interface {
		GetWithContext(context.Context) (T, bool)
	}); ok {
		return q.GetWithContext(ctx)
	}
	if ctx.Err() != nil {
		return item, true
	}
	return queue.Get()
}

// ShutDown drops the waiting items and shuts the queue down. When it returns, no goroutine of the
// delaying queue runs. It may be called again: the queue is shut down once, and again only to end a
// ShutDownWithDrain.
func (q *TypedDelayingQueue[T]) ShutDown() {
	draining := q.drop(0)
	first := false
	q.shutDown.Do(func() {
		first = true
		q.TypedInterface.ShutDown()
	})
	if draining > 0 && !first {
		q.TypedInterface.ShutDown()
	}
	q.timers.Wait()
	q.release()
}

// ShutDownWithDrain drops the waiting items and drains the queue: see Typed.
func (q *TypedDelayingQueue[T]) ShutDownWithDrain() {
	q.drop(1)
	defer q.drop(-1)
	q.TypedInterface.ShutDownWithDrain()
	q.timers.Wait()
	q.release()
}

// drop drops the waiting items. It returns the number of calls of ShutDownWithDrain in progress.
func (q *TypedDelayingQueue[T]) drop(drains int) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopped = true
	q.waiting, q.heap = newItemMap[T](), nil
	if q.stop != nil && q.stop() {
		q.timers.Done()
		q.stop = nil
	}
	q.draining += drains
	return q.draining
}

// afterFunc runs f in a goroutine after d. The function that it returns stops that, and reports
// whether it did; if not, f has been started. It is called at most once.
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
