// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"fmt"
	"time"

	"example.com/informerstack/workqueue"
)

// RateLimitingQueue traces the keys that enter and leave a workqueue. If queue is a
// workqueue.ExtendedInterface, the result is one too, and a workqueue.PriorityInterface.
func RateLimitingQueue[T comparable](
	queue workqueue.TypedRateLimitingInterface[T], sink Sink,
) workqueue.TypedRateLimitingInterface[T] {
	traced := rateLimitingQueue[T]{queue, sink, nil}
	if extended, ok := queue.(workqueue.ExtendedInterface[T]); ok {
		return extendedQueue[T]{traced, extended, workqueue.WithPriorities(extended)}
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
	return extendedQueue[T]{rateLimitingQueue[T]{queue, sink, delays}, queue, queue}
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

// extendedQueue also has the methods of a workqueue.TypedRateLimitingQueue that its interfaces for
// contexts and priorities have.
type extendedQueue[T comparable] struct {
	rateLimitingQueue[T]
	extended   workqueue.ExtendedInterface[T]
	priorities workqueue.PriorityInterface[T] // the same
}

// AddWithOpts traces added keys, as the method that does without a priority.
func (q extendedQueue[T]) AddWithOpts(o workqueue.AddOpts, items ...T) {
	for _, item := range items {
		switch {
		case o.RateLimited: // is traced below
		case o.After > 0:
			q.key("AddAfter", item, fmt.Sprintf("%v, priority %d", o.After, o.Priority))
		default:
			q.key("Add", item, fmt.Sprintf("priority %d", o.Priority))
		}
		q.priorities.AddWithOpts(o, item)
		if o.RateLimited {
			q.retried(item)
		}
	}
}

// AddWithPriority is AddWithOpts with a priority.
func (q extendedQueue[T]) AddWithPriority(item T, priority int) {
	q.AddWithOpts(workqueue.AddOpts{Priority: priority}, item)
}

// AddAfterWithPriority is AddWithOpts with a delay and a priority.
func (q extendedQueue[T]) AddAfterWithPriority(item T, duration time.Duration, priority int) {
	q.AddWithOpts(workqueue.AddOpts{After: duration, Priority: priority}, item)
}

// GetWithPriority traces the key that a worker gets.
func (q extendedQueue[T]) GetWithPriority() (item T, priority int, shutdown bool) {
	item, priority, shutdown = q.priorities.GetWithPriority()
	if !shutdown {
		q.key("Get", item, "")
	}
	return item, priority, shutdown
}

// TakenPriority implements workqueue.PriorityInterface.
func (q extendedQueue[T]) TakenPriority(item T) int { return q.priorities.TakenPriority(item) }

// Groups implements workqueue.Grouped.
func (q extendedQueue[T]) Groups(limit int) (most []workqueue.Group, all workqueue.GroupTotals) {
	if grouped, ok := q.extended.(workqueue.Grouped); ok {
		return grouped.Groups(limit)
	}
	return nil, all
}

// Snapshot returns the queue's Snapshot.
func (q extendedQueue[T]) Snapshot() workqueue.Snapshot[T] { return q.extended.Snapshot() }

// SnapshotOf implements workqueue.Partial.
func (q extendedQueue[T]) SnapshotOf(skip, limit int) workqueue.Part[T] {
	return workqueue.SnapshotOf(q.extended, skip, limit)
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
