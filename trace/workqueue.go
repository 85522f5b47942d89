// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"fmt"
	"time"

	"example.com/informerstack/workqueue"
)

// RateLimitingQueue traces the keys that enter and leave a workqueue. The result has every method
// of a workqueue.TypedRateLimitingQueue. If queue lacks one that its interface does not require,
// the result does what it can without it.
func RateLimitingQueue[T comparable](queue workqueue.TypedRateLimitingInterface[T], sink Sink) workqueue.TypedRateLimitingInterface[T] {
	return rateLimitingQueue[T]{queue, sink}
}

type rateLimitingQueue[T comparable] struct {
	workqueue.TypedRateLimitingInterface[T]
	sink Sink
}

func (q rateLimitingQueue[T]) key(what string, item T, detail string) {
	q.sink(Event{Time: time.Now(), Hop: Workqueue, What: what, Key: fmt.Sprint(item), Detail: detail})
}

// Snapshot is that of the queue, or empty if it has none.
func (q rateLimitingQueue[T]) Snapshot() workqueue.Snapshot[T] {
	if teller, ok := q.TypedRateLimitingInterface.(interface{ Snapshot() workqueue.Snapshot[T] }); ok {
		return teller.Snapshot()
	}
	return workqueue.Snapshot[T]{}
}

// Tracked is that of the queue, or 0 if it has none.
func (q rateLimitingQueue[T]) Tracked() int {
	if tracker, ok := q.TypedRateLimitingInterface.(workqueue.Tracker); ok {
		return tracker.Tracked()
	}
	return 0
}

// CancelDelayed traces a key that waits no longer. A queue without the method cancels nothing.
func (q rateLimitingQueue[T]) CancelDelayed(item T) bool {
	queue, ok := q.TypedRateLimitingInterface.(interface{ CancelDelayed(T) bool })
	canceled := ok && queue.CancelDelayed(item)
	if canceled {
		q.key("CancelDelayed", item, "")
	}
	return canceled
}

// Add traces a key that is to be worked on.
func (q rateLimitingQueue[T]) Add(item T) {
	q.key("Add", item, "")
	q.TypedRateLimitingInterface.Add(item)
}

// AddAfter traces a key that is to be worked on later.
func (q rateLimitingQueue[T]) AddAfter(item T, duration time.Duration) {
	q.key("AddAfter", item, duration.String())
	q.TypedRateLimitingInterface.AddAfter(item, duration)
}

// AddRateLimited traces a key that failed.
func (q rateLimitingQueue[T]) AddRateLimited(item T) {
	q.TypedRateLimitingInterface.AddRateLimited(item)
	q.key("AddRateLimited", item, fmt.Sprintf("%d requeues", q.NumRequeues(item)))
}

// AddFailed traces a key that failed, and why. A queue that cannot be told the error is told that
// there was one.
func (q rateLimitingQueue[T]) AddFailed(item T, err error) {
	if teller, ok := q.TypedRateLimitingInterface.(interface{ AddFailed(T, error) }); ok {
		teller.AddFailed(item, err)
	} else {
		q.TypedRateLimitingInterface.AddRateLimited(item)
	}
	q.key("AddFailed", item, fmt.Sprintf("%d requeues, %v", q.NumRequeues(item), err))
}

// Get traces a key that a worker takes.
func (q rateLimitingQueue[T]) Get() (item T, shutdown bool) {
	item, shutdown = q.TypedRateLimitingInterface.Get()
	if !shutdown {
		q.key("Get", item, "")
	}
	return item, shutdown
}

// GetWithContext traces a key that a worker takes. If the queue cannot wait for a context, ctx is
// looked at only before waiting.
func (q rateLimitingQueue[T]) GetWithContext(ctx context.Context) (item T, shutdown bool) {
	if ctx.Err() != nil {
		return item, true
	}
	waiter, ok := q.TypedRateLimitingInterface.(interface {
		GetWithContext(context.Context) (T, bool)
	})
	if !ok {
		return q.Get()
	}
	if item, shutdown = waiter.GetWithContext(ctx); !shutdown {
		q.key("Get", item, "")
	}
	return item, shutdown
}

// Done traces a key that a worker has finished with.
func (q rateLimitingQueue[T]) Done(item T) {
	q.key("Done", item, "")
	q.TypedRateLimitingInterface.Done(item)
}

// Forget traces a key whose failures are forgotten.
func (q rateLimitingQueue[T]) Forget(item T) {
	q.key("Forget", item, "")
	q.TypedRateLimitingInterface.Forget(item)
}
