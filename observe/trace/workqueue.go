// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"fmt"
	"time"

	"example.com/informerstack/workqueue"
)

// RateLimitingQueue traces the keys that enter and leave a workqueue. If queue is a
// workqueue.ExtendedInterface, the result is one too.
func RateLimitingQueue[T comparable](
	queue workqueue.TypedRateLimitingInterface[T], sink Sink,
) workqueue.TypedRateLimitingInterface[T] {
	traced := rateLimitingQueue[T]{queue, sink, nil}
	if extended, ok := queue.(workqueue.ExtendedInterface[T]); ok {
		return extendedQueue[T]{traced, extended}
	}
	return traced
}

// NewRateLimitingQueue returns a new traced queue. Unlike RateLimitingQueue, it also traces the
// delay of each retry.
func NewRateLimitingQueue[T comparable](
	limiter workqueue.TypedRateLimiter[T], config workqueue.Config[T], sink Sink,
) workqueue.TypedRateLimitingInterface[T] {
	delays := &delayRecorder[T]{TypedRateLimiter: limiter, delays: map[T]time.Duration{}}
	queue := workqueue.NewTypedRateLimitingQueue[T](delays, config)
	return extendedQueue[T]{rateLimitingQueue[T]{queue, sink, delays}, queue}
}

type rateLimitingQueue[T comparable] struct {
	workqueue.TypedRateLimitingInterface[T]
	sink   Sink
	delays *delayRecorder[T] // nil: the delays are not known
}

// retried traces a key that was added again after a failure.
func (q rateLimitingQueue[T]) retried(item T) {
	detail := fmt.Sprintf("failure %d", q.NumRequeues(item))
	if q.delays != nil {
		detail = fmt.Sprintf("in %v, %s", q.delays.take(item), detail)
	}
	q.key("AddRateLimited", item, detail)
}

func (q rateLimitingQueue[T]) key(what string, item T, detail string) {
	q.sink.send(Event{Hop: Workqueue, What: what, Key: fmt.Sprint(item), Detail: detail}, nil)
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
	q.retried(item)
}

// Get traces the key that a worker gets.
func (q rateLimitingQueue[T]) Get() (item T, shutdown bool) {
	item, shutdown = q.TypedRateLimitingInterface.Get()
	if !shutdown {
		q.key("Get", item, "")
	}
	return item, shutdown
}

// Done traces a key that a worker has finished.
func (q rateLimitingQueue[T]) Done(item T) {
	q.key("Done", item, "")
	q.TypedRateLimitingInterface.Done(item)
}

// Forget traces a key when the rate limiter forgets its failures.
func (q rateLimitingQueue[T]) Forget(item T) {
	q.key("Forget", item, "")
	q.TypedRateLimitingInterface.Forget(item)
}

// extendedQueue also has the methods of workqueue.ExtendedInterface.
type extendedQueue[T comparable] struct {
	rateLimitingQueue[T]
	extended workqueue.ExtendedInterface[T]
}

// Snapshot returns the queue's Snapshot.
func (q extendedQueue[T]) Snapshot() workqueue.Snapshot[T] { return q.extended.Snapshot() }

// SnapshotOf implements workqueue.Partial.
func (q extendedQueue[T]) SnapshotOf(limit int) workqueue.Part[T] {
	return workqueue.SnapshotOf(q.extended, limit)
}

// Find implements workqueue.Partial.
func (q extendedQueue[T]) Find(match func(item T) bool) workqueue.Part[T] {
	return workqueue.Find(q.extended, match)
}

// GetWithContext traces the key that a worker gets.
func (q extendedQueue[T]) GetWithContext(ctx context.Context) (item T, shutdown bool) {
	item, shutdown = q.extended.GetWithContext(ctx)
	if !shutdown {
		q.key("Get", item, "")
	}
	return item, shutdown
}

// AddFailed is AddRateLimited for a queue that knows the error.
func (q extendedQueue[T]) AddFailed(item T, err error) {
	q.extended.AddFailed(item, err)
	q.retried(item)
}

// CancelDelayed traces a key that waits no longer.
func (q extendedQueue[T]) CancelDelayed(item T) bool {
	canceled := q.extended.CancelDelayed(item)
	if canceled {
		q.key("CancelDelayed", item, "")
	}
	return canceled
}
