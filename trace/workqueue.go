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
// the result works without it as far as possible.
func RateLimitingQueue[T comparable](
	queue workqueue.TypedRateLimitingInterface[T], sink Sink,
) workqueue.TypedRateLimitingInterface[T] {
	return rateLimitingQueue[T]{queue, sink}
}

type rateLimitingQueue[T comparable] struct {
	workqueue.TypedRateLimitingInterface[T]
	sink Sink
}

func (q rateLimitingQueue[T]) key(what string, item T, detail string) {
	q.sink.send(Event{Hop: Workqueue, What: what, Key: fmt.Sprint(item), Detail: detail}, nil)
}

// Snapshot returns the queue's Snapshot, or an empty one if it has none.
func (q rateLimitingQueue[T]) Snapshot() workqueue.Snapshot[T] {
	inner, ok := q.TypedRateLimitingInterface.(interface{ Snapshot() workqueue.Snapshot[T] })
	if ok {
		return inner.Snapshot()
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

// Add traces an added key.
func (q rateLimitingQueue[T]) Add(item T) {
	q.key("Add", item, "")
	q.TypedRateLimitingInterface.Add(item)
}

// AddAfter traces a key that is added with a delay.
func (q rateLimitingQueue[T]) AddAfter(item T, duration time.Duration) {
	q.key("AddAfter", item, duration.String())
	q.TypedRateLimitingInterface.AddAfter(item, duration)
}

// AddRateLimited traces a key that is added again after a failure.
func (q rateLimitingQueue[T]) AddRateLimited(item T) {
	q.TypedRateLimitingInterface.AddRateLimited(item)
	q.key("AddRateLimited", item, fmt.Sprintf("%d requeues", q.NumRequeues(item)))
}

// AddFailed traces a key that is added again after a failure, and its error. For a queue without
// AddFailed it calls AddRateLimited.
func (q rateLimitingQueue[T]) AddFailed(item T, err error) {
	if inner, ok := q.TypedRateLimitingInterface.(interface{ AddFailed(T, error) }); ok {
		inner.AddFailed(item, err)
	} else {
		q.TypedRateLimitingInterface.AddRateLimited(item)
	}
	q.key("AddFailed", item, fmt.Sprintf("%d requeues, %v", q.NumRequeues(item), err))
}

// Get traces the key that a worker gets.
func (q rateLimitingQueue[T]) Get() (item T, shutdown bool) {
	item, shutdown = q.TypedRateLimitingInterface.Get()
	if !shutdown {
		q.key("Get", item, "")
	}
	return item, shutdown
}

// GetWithContext traces the key that a worker gets. If the queue has no GetWithContext, ctx is
// checked before waiting, but does not end the wait.
func (q rateLimitingQueue[T]) GetWithContext(ctx context.Context) (item T, shutdown bool) {
	if ctx.Err() != nil {
		return item, true
	}
	inner, ok := q.TypedRateLimitingInterface.(interface {
		GetWithContext(context.Context) (T, bool)
	})
	if !ok {
		return q.Get()
	}
	if item, shutdown = inner.GetWithContext(ctx); !shutdown {
		q.key("Get", item, "")
	}
	return item, shutdown
}

// Done traces a key that a worker has finished.
func (q rateLimitingQueue[T]) Done(item T) {
	q.key("Done", item, "")
	q.TypedRateLimitingInterface.Done(item)
}

// Forget traces a key whose failures the rate limiter forgets.
func (q rateLimitingQueue[T]) Forget(item T) {
	q.key("Forget", item, "")
	q.TypedRateLimitingInterface.Forget(item)
}
