// SPDX-License-Identifier: Apache-2.0

package workqueue

// TypedRateLimitingQueue is a delaying queue that asks a limiter how long an item has to wait.
//
// After a failure a worker calls AddRateLimited or AddFailed. After success, or when it gives the
// item up, it calls Forget. In both cases it then calls Done.
type TypedRateLimitingQueue[T comparable] struct {
	// TypedDelayingQueue is the queue to which items are added after the limiter's delay.
	*TypedDelayingQueue[T]
	limiter TypedRateLimiter[T]
}

// NewTypedRateLimitingQueue returns a rate-limiting queue. If rateLimiter is nil, AddRateLimited,
// AddFailed, Forget and NumRequeues panic.
func NewTypedRateLimitingQueue[T comparable](
	rateLimiter TypedRateLimiter[T], config Config[T],
) *TypedRateLimitingQueue[T] {
	return &TypedRateLimitingQueue[T]{NewTypedDelayingQueue(config), rateLimiter}
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

// Snapshot is that of the delaying queue, with what the limiter remembers.
func (q *TypedRateLimitingQueue[T]) Snapshot() Snapshot[T] {
	s := q.TypedDelayingQueue.Snapshot()
	s.Limited = tracked(q.limiter)
	if q.limiter != nil {
		for i := range s.Waiting {
			s.Waiting[i].Failures = q.limiter.NumRequeues(s.Waiting[i].Item)
		}
	}
	return s
}
