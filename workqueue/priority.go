// SPDX-License-Identifier: Apache-2.0

package workqueue

import "time"

// Prioritizer is a queue that knows priorities: a higher one is handed out first.
type Prioritizer[T comparable] interface {
	// AddWithPriority is Add with a priority. That of Add is 0. The highest priority of an item's
	// adds before a Get counts.
	AddWithPriority(item T, priority int)
	// GetWithPriority is Get, and returns the priority with which the item was queued.
	GetWithPriority() (item T, priority int, shutdown bool)
	// TakenPriority returns the priority with which a worker got item, or 0 if no worker has
	// it.
	TakenPriority(item T) int
}

// PriorityInterface is a rate-limiting queue with priorities. A queue that decorates one should
// implement it, too: package controller looks for it.
type PriorityInterface[T comparable] interface {
	TypedRateLimitingInterface[T]
	// AddWithOpts adds each of the items.
	AddWithOpts(o AddOpts, items ...T)
	// GetWithPriority and TakenPriority are those of a Prioritizer.
	GetWithPriority() (item T, priority int, shutdown bool)
	TakenPriority(item T) int
}

// WithPriorities returns queue if it is a PriorityInterface, or a queue that ignores priorities.
// It is for decorators.
func WithPriorities[T comparable](queue ExtendedInterface[T]) PriorityInterface[T] {
	if p, ok := queue.(PriorityInterface[T]); ok {
		return p
	}
	return withoutPriorities[T]{queue}
}

type withoutPriorities[T comparable] struct{ ExtendedInterface[T] }

// AddWithOpts ignores the priority, and After of an item that failed.
func (q withoutPriorities[T]) AddWithOpts(o AddOpts, items ...T) {
	for _, item := range items {
		switch {
		case o.RateLimited && o.Err != nil:
			q.AddFailed(item, o.Err)
		case o.RateLimited:
			q.AddRateLimited(item)
		case o.After > 0:
			q.AddAfter(item, o.After)
		default:
			q.Add(item)
		}
	}
}

// GetWithPriority is Get.
func (q withoutPriorities[T]) GetWithPriority() (item T, priority int, shutdown bool) {
	item, shutdown = q.Get()
	return item, 0, shutdown
}

// TakenPriority is 0.
func (q withoutPriorities[T]) TakenPriority(T) int { return 0 }

// Grouped is a queue of items in groups.
type Grouped interface {
	// Groups returns the limit groups with the most queued items, the most first, and the sums over
	// all groups.
	Groups(limit int) (most []Group, all GroupTotals)
}

// AddOpts says when items are added, and with which priority.
type AddOpts struct {
	// After is how long an item waits first.
	After time.Duration
	// RateLimited counts a failure of each item. It then waits for the limiter's delay, or for
	// After if that is set and shorter, as with controller-runtime's queue.
	RateLimited bool
	// Err is the failure, if it is known: an ErrorRateLimiter decides by it.
	Err error
	// Priority is for a Prioritizer as Config.Queue.
	Priority int
}

// AddWithOpts adds each of the items.
func (q *TypedRateLimitingQueue[T]) AddWithOpts(o AddOpts, items ...T) {
	for _, item := range items {
		delay := o.After
		if o.RateLimited {
			limited := q.delayOf(item, o.Err)
			if delay <= 0 || limited < delay {
				delay = limited
			}
		}
		if delay > 0 || o.RateLimited {
			q.AddAfterWithPriority(item, delay, o.Priority)
		} else {
			q.AddWithPriority(item, o.Priority)
		}
	}
}

// delayOf counts a failure, and returns the limiter's delay. err may be nil.
func (q *TypedRateLimitingQueue[T]) delayOf(item T, err error) time.Duration {
	if err == nil {
		return q.limiter.When(item)
	}
	return whenError(q.limiter, item, err)
}

// AddWithPriority is Add with a priority, if Config.Queue is a Prioritizer. With
// AddSupersedesDelayed, the item has the priority of its wait if that is higher.
func (q *TypedDelayingQueue[T]) AddWithPriority(item T, priority int) {
	if q.addSupersedes {
		waited, added := q.supersede(item)
		defer added()
		priority = max(priority, waited)
	}
	q.addNow(item, priority)
}

func (q *TypedDelayingQueue[T]) addNow(item T, priority int) {
	if below, ok := q.ContextInterface.(Prioritizer[T]); ok && priority != 0 {
		below.AddWithPriority(item, priority)
	} else {
		q.ContextInterface.Add(item)
	}
}

// GetWithPriority is Get, and returns the priority of the item if Config.Queue is a Prioritizer.
func (q *TypedDelayingQueue[T]) GetWithPriority() (item T, priority int, shutdown bool) {
	if below, ok := q.ContextInterface.(Prioritizer[T]); ok {
		return below.GetWithPriority()
	}
	item, shutdown = q.Get()
	return item, 0, shutdown
}

// TakenPriority returns the priority with which a worker got item, if Config.Queue is a
// Prioritizer.
func (q *TypedDelayingQueue[T]) TakenPriority(item T) int {
	if below, ok := q.ContextInterface.(Prioritizer[T]); ok {
		return below.TakenPriority(item)
	}
	return 0
}

// Groups implements Grouped. The result is empty if Config.Queue is not Grouped.
func (q *TypedDelayingQueue[T]) Groups(limit int) (most []Group, all GroupTotals) {
	if below, ok := q.ContextInterface.(Grouped); ok {
		return below.Groups(limit)
	}
	return nil, GroupTotals{}
}

// notePriority notes the priority of an item that is queued or waits.
func (s *Snapshot[T]) notePriority(item T, priority int) {
	if priority == 0 {
		return
	}
	if s.Priorities == nil {
		s.Priorities = map[T]int{}
	}
	s.Priorities[item] = priority
}

// setWaiting adds the items that wait. The priority of one that is queued, too, stays.
func (s *Snapshot[T]) setWaiting(waiting []Waiting[T]) {
	s.Waiting = waiting
	for _, w := range waiting {
		if _, queued := s.Priorities[w.Item]; !queued {
			s.notePriority(w.Item, w.Priority)
		}
	}
}
