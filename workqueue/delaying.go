// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"context"
	"sync"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// dueBatchLen is how many due items are taken from the heap under one lock.
const dueBatchLen = 64

// TypedDelayingQueue is a queue that items can join later.
//
// What waits stands in a heap, under a mutex. An alarm is set for the one that is due first; when it rings, what is due
// joins the queue. So AddAfter never blocks and there is no goroutine between it and the heap. (client-go hands every
// AddAfter to a goroutine that owns the heap, over the channel waitingForAddCh: a channel is how goroutines talk. Ours has
// no such goroutine, so it needs no channel and nobody waits when a channel is full.)
//
//	D1  an item waits at most once, for the earliest of its times
//	D2  an item waits  =>  the alarm is set for its time or an earlier one, or the due ones are just joining
//	D3  after ShutDown nothing waits and no alarm is set
//
// An Add does not cancel a wait: the item is worked on now and again at its time, unless AddSupersedesDelayed says
// otherwise.
type TypedDelayingQueue[T comparable] struct {
	// TypedInterface is the queue to join.
	TypedInterface[T]
	retries       CounterMetric // nil: none
	release       func()        // releases retries
	clock         clock.WithTicker
	logger        klog.Logger
	addSupersedes bool
	alarms        sync.WaitGroup // those that are set or rang, until they were stopped or what they started has ended

	mu      sync.Mutex
	heap    waitHeap[T]
	byItem  table[T, *waiting[T]]
	seq     uint64
	alarm   func() (stopped bool) // stops the alarm; nil: none is set
	rings   time.Time             // when the alarm rings
	joining bool                  // due items are joining the queue
	stopped bool
}

// TypedDelayingQueueConfig is what NewTypedDelayingQueueWithConfig can be told. The zero value is a delaying FIFO queue
// without metrics.
type TypedDelayingQueueConfig[T comparable] struct {
	// Logger is told if Queue panics while a due item joins it. nil: klog's.
	Logger *klog.Logger
	// Name of the queue in its metrics. Without a name there are none.
	Name string
	// MetricsProvider makes the queue's metrics. nil: none.
	MetricsProvider MetricsProvider
	// Clock tells when an item is due. nil: the real one.
	Clock clock.WithTicker
	// Queue is the queue that items join. nil: a new Typed with the name, metrics and clock above.
	Queue TypedInterface[T]
	// AddSupersedesDelayed makes Add, and AddAfter without a delay, cancel the item's wait, so that it is worked on once.
	AddSupersedesDelayed bool
}

// NewTypedDelayingQueue makes a delaying FIFO queue without metrics.
func NewTypedDelayingQueue[T comparable]() *TypedDelayingQueue[T] {
	return NewTypedDelayingQueueWithConfig(TypedDelayingQueueConfig[T]{})
}

// NewTypedDelayingQueueWithConfig makes a delaying queue.
func NewTypedDelayingQueueWithConfig[T comparable](config TypedDelayingQueueConfig[T]) *TypedDelayingQueue[T] {
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
	return &TypedDelayingQueue[T]{
		TypedInterface: config.Queue,
		retries:        newRetriesMetric(config.MetricsProvider, config.Name),
		release:        sync.OnceFunc(func() { releaseMetrics(config.MetricsProvider, config.Name) }),
		clock:          orRealClock(config.Clock),
		logger:         logger,
		addSupersedes:  config.AddSupersedesDelayed,
		byItem:         newTable[T, *waiting[T]](),
	}
}

// Add queues item now. If it also waits for a time, it still joins again then, unless AddSupersedesDelayed is set.
func (q *TypedDelayingQueue[T]) Add(item T) {
	if q.addSupersedes {
		q.CancelDelayed(item)
	}
	q.TypedInterface.Add(item)
}

// AddAfter lets item join the queue once duration has passed, at once if that is not positive. An item that waits already
// joins at the earlier of the two times, once. Ignored after ShutDown. AddAfter does not block.
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
	hash, due := q.byItem.hash(item), q.clock.Now().Add(duration)

	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.stopped {
		q.addLocked(item, hash, due)
		q.setAlarmLocked()
	}
}

// CancelDelayed makes item wait no longer, and reports whether it did. An item that has joined the queue stays in it.
func (q *TypedDelayingQueue[T]) CancelDelayed(item T) bool {
	hash := q.byItem.hash(item)
	q.mu.Lock()
	defer q.mu.Unlock()
	w := q.byItem.find(item, hash)
	if w == nil {
		return false
	}
	q.removeLocked(w)
	return true
}

// setAlarmLocked keeps D2.
func (q *TypedDelayingQueue[T]) setAlarmLocked() {
	if len(q.heap) == 0 || q.joining {
		return
	}
	due := q.heap[0].due
	if q.alarm != nil {
		if !due.Before(q.rings) || !q.alarm() {
			return // it rings soon enough, or is ringing
		}
		q.alarms.Done()
	}
	q.alarms.Add(1)
	q.alarm = afterFunc(q.clock, due.Sub(q.clock.Now()), q.join)
	q.rings = due
}

// join is what the alarm starts: it moves every due item to the queue, then sets the next alarm. A panic of the owner's
// queue goes to the crash handlers; if they are told not to end the process, nothing that waits joins any more.
func (q *TypedDelayingQueue[T]) join() {
	defer q.alarms.Done()
	defer utilruntime.HandleCrashWithLogger(q.logger)
	var batch [dueBatchLen]T
	for {
		due := q.takeDue(batch[:0])
		if len(due) == 0 {
			return
		}
		for _, item := range due {
			q.TypedInterface.Add(item)
		}
	}
}

// takeDue appends due items to batch, as many as it has room for. If there are none, joining is over.
func (q *TypedDelayingQueue[T]) takeDue(batch []T) []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.alarm = nil
	now := q.clock.Now()
	for len(batch) < cap(batch) {
		item, ok := q.nextLocked(now)
		if !ok {
			break
		}
		batch = append(batch, item)
	}
	q.joining = len(batch) > 0
	q.setAlarmLocked()
	return batch
}

// GetWithContext is Typed's: Get for a worker that also stops when ctx does. Over a Queue of the owner's own that has no such
// method, ctx is looked at only before waiting.
func (q *TypedDelayingQueue[T]) GetWithContext(ctx context.Context) (item T, shutdown bool) {
	return getWithContext(ctx, q.TypedInterface)
}

// getWithContext asks a queue that may be the owner's own. If that cannot wait for a context, ctx is looked at only
// before the wait.
func getWithContext[T comparable](ctx context.Context, queue TypedInterface[T]) (item T, shutdown bool) {
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

// ShutDown drops what waits, and shuts the queue down. When it returns nothing of the delaying queue runs. It may be
// called again.
func (q *TypedDelayingQueue[T]) ShutDown() {
	q.stopWaiting()
	q.TypedInterface.ShutDown()
	q.alarms.Wait()
	q.release()
}

// ShutDownWithDrain drops what waits, and drains the queue: see Typed.
func (q *TypedDelayingQueue[T]) ShutDownWithDrain() {
	q.stopWaiting()
	q.TypedInterface.ShutDownWithDrain()
	q.alarms.Wait()
	q.release()
}

func (q *TypedDelayingQueue[T]) stopWaiting() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stopped = true
	q.heap = nil
	q.byItem.clear()
	if q.alarm != nil && q.alarm() {
		q.alarms.Done()
	}
	q.alarm = nil
}
