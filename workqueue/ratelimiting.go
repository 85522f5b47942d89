// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"context"

	"k8s.io/utils/clock"
)

// TypedRateLimitingQueue is a delaying queue that asks a limiter how long an item has to wait.
//
// A worker that failed calls AddRateLimited or AddFailed; one that succeeded, or gave the item up, calls Forget. Either
// way it then calls Done.
type TypedRateLimitingQueue[T comparable] struct {
	// TypedDelayingInterface is the queue that items join when the limiter's delay is over.
	TypedDelayingInterface[T]
	limiter TypedRateLimiter[T]
}

// TypedRateLimitingQueueConfig is what NewTypedRateLimitingQueueWithConfig can be told. The zero value is a FIFO queue
// without metrics.
type TypedRateLimitingQueueConfig[T comparable] struct {
	// Name of the queue in its metrics. Without a name there are none.
	Name string
	// MetricsProvider makes the queue's metrics. nil: none.
	MetricsProvider MetricsProvider
	// Clock tells when an item is due. nil: the real one.
	Clock clock.WithTicker
	// DelayingQueue is the queue that items join. nil: a new TypedDelayingQueue as the other fields say.
	DelayingQueue TypedDelayingInterface[T]
	// AddSupersedesDelayed makes Add cancel the item's wait, so that it is worked on once: see TypedDelayingQueueConfig.
	AddSupersedesDelayed bool
}

// NewTypedRateLimitingQueue makes a rate-limiting FIFO queue without metrics. With a nil limiter, everything works but
// what asks it.
func NewTypedRateLimitingQueue[T comparable](rateLimiter TypedRateLimiter[T]) *TypedRateLimitingQueue[T] {
	return NewTypedRateLimitingQueueWithConfig(rateLimiter, TypedRateLimitingQueueConfig[T]{})
}

// NewTypedRateLimitingQueueWithConfig makes a rate-limiting queue.
func NewTypedRateLimitingQueueWithConfig[T comparable](
	rateLimiter TypedRateLimiter[T], config TypedRateLimitingQueueConfig[T],
) *TypedRateLimitingQueue[T] {
	if config.DelayingQueue == nil {
		config.DelayingQueue = NewTypedDelayingQueueWithConfig(TypedDelayingQueueConfig[T]{
			Name:                 config.Name,
			MetricsProvider:      config.MetricsProvider,
			Clock:                config.Clock,
			AddSupersedesDelayed: config.AddSupersedesDelayed,
		})
	}
	return &TypedRateLimitingQueue[T]{TypedDelayingInterface: config.DelayingQueue, limiter: rateLimiter}
}

// AddRateLimited counts a failure of item and lets it join the queue after the limiter's delay.
func (q *TypedRateLimitingQueue[T]) AddRateLimited(item T) {
	q.AddAfter(item, q.limiter.When(item))
}

// AddFailed is AddRateLimited for a caller that knows the error: a limiter that is an ErrorRateLimiter decides by it.
func (q *TypedRateLimitingQueue[T]) AddFailed(item T, err error) {
	q.AddAfter(item, whenError(q.limiter, item, err))
}

// Forget makes the limiter forget item's failures. The worker still owes Done.
func (q *TypedRateLimitingQueue[T]) Forget(item T) {
	q.limiter.Forget(item)
}

// NumRequeues is how many failures of item the limiter remembers: what a worker compares with its maximum before it gives
// an item up.
func (q *TypedRateLimitingQueue[T]) NumRequeues(item T) int {
	return q.limiter.NumRequeues(item)
}

// GetWithContext is Typed's. Over a DelayingQueue of the owner's own that has no such method, ctx is looked at only before
// waiting.
func (q *TypedRateLimitingQueue[T]) GetWithContext(ctx context.Context) (item T, shutdown bool) {
	return getWithContext[T](ctx, q.TypedDelayingInterface)
}

// CancelDelayed makes item wait no longer, and reports whether it did. What the limiter counted stays counted. Over a
// DelayingQueue of the owner's own that has no such method it does nothing.
func (q *TypedRateLimitingQueue[T]) CancelDelayed(item T) bool {
	queue, ok := q.TypedDelayingInterface.(interface{ CancelDelayed(T) bool })
	return ok && queue.CancelDelayed(item)
}

// Tracked is how many items the limiter remembers, or 0 if it does not say.
func (q *TypedRateLimitingQueue[T]) Tracked() int {
	return tracked(q.limiter)
}

// Snapshot is that of the delaying queue, or empty if that has none.
func (q *TypedRateLimitingQueue[T]) Snapshot() Snapshot[T] {
	if queue, ok := q.TypedDelayingInterface.(interface{ Snapshot() Snapshot[T] }); ok {
		return queue.Snapshot()
	}
	return Snapshot[T]{}
}
