// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"context"

	"k8s.io/utils/clock"
)

// TypedRateLimitingQueue is a delaying queue that asks a limiter how long an item has to wait.
//
// After a failure a worker calls AddRateLimited or AddFailed. After success, or when it gives the
// item up, it calls Forget. In both cases it then calls Done.
type TypedRateLimitingQueue[T comparable] struct {
	// TypedDelayingInterface is the queue to which items are added after the limiter's delay.
	TypedDelayingInterface[T]
	limiter TypedRateLimiter[T]
}

// TypedRateLimitingQueueConfig configures NewTypedRateLimitingQueueWithConfig. The zero value makes
// a FIFO queue without metrics.
type TypedRateLimitingQueueConfig[T comparable] struct {
	// Name of the queue in its metrics. A queue without a name has no metrics.
	Name string
	// MetricsProvider makes the queue's metrics. Nil means no metrics.
	MetricsProvider MetricsProvider
	// Clock decides when an item is due. Nil means the real clock.
	Clock clock.WithTicker
	// DelayingQueue is the queue to which items are added. Nil means a new TypedDelayingQueue,
	// configured by the other fields.
	DelayingQueue TypedDelayingInterface[T]
	// AddSupersedesDelayed makes Add cancel the item's wait, so that the item is worked on once:
	// see TypedDelayingQueueConfig.
	AddSupersedesDelayed bool
}

// NewTypedRateLimitingQueue returns a rate-limiting FIFO queue without metrics. If rateLimiter is
// nil, AddRateLimited, AddFailed, Forget and NumRequeues panic.
func NewTypedRateLimitingQueue[T comparable](
	rateLimiter TypedRateLimiter[T],
) *TypedRateLimitingQueue[T] {
	return NewTypedRateLimitingQueueWithConfig(rateLimiter, TypedRateLimitingQueueConfig[T]{})
}

// NewTypedRateLimitingQueueWithConfig returns a rate-limiting queue.
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
	return &TypedRateLimitingQueue[T]{
		TypedDelayingInterface: config.DelayingQueue, limiter: rateLimiter}
}

// AddRateLimited counts a failure of item and adds it after the limiter's delay.
func (q *TypedRateLimitingQueue[T]) AddRateLimited(item T) {
	q.AddAfter(item, q.limiter.When(item))
}

// AddFailed is AddRateLimited for a caller that knows the error: an ErrorRateLimiter decides by it.
func (q *TypedRateLimitingQueue[T]) AddFailed(item T, err error) {
	q.AddAfter(item, whenError(q.limiter, item, err))
}

// Forget makes the limiter forget item's failures. It does not replace Done.
func (q *TypedRateLimitingQueue[T]) Forget(item T) {
	q.limiter.Forget(item)
}

// NumRequeues is the number of item's failures that the limiter remembers. A worker compares it
// with its maximum before it gives an item up.
func (q *TypedRateLimitingQueue[T]) NumRequeues(item T) int {
	return q.limiter.NumRequeues(item)
}

// GetWithContext is that of Typed: Get for a worker that also stops when ctx ends. If an owner's
// DelayingQueue has no such method, ctx is checked only before the wait.
func (q *TypedRateLimitingQueue[T]) GetWithContext(ctx context.Context) (item T, shutdown bool) {
	return getWithContext[T](ctx, q.TypedDelayingInterface)
}

// CancelDelayed ends item's wait, and reports whether item waited. The limiter's count does not
// change. If an owner's DelayingQueue has no such method, CancelDelayed does nothing.
func (q *TypedRateLimitingQueue[T]) CancelDelayed(item T) bool {
	queue, ok := q.TypedDelayingInterface.(interface{ CancelDelayed(T) bool })
	return ok && queue.CancelDelayed(item)
}

// Tracked is the number of items that the limiter remembers, or 0 if it is no Tracker.
func (q *TypedRateLimitingQueue[T]) Tracked() int {
	return tracked(q.limiter)
}
