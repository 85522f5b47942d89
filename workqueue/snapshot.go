// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"slices"
	"time"
)

// Snapshot is what a queue held at one moment, for people to look at.
type Snapshot[T comparable] struct {
	// Ready are the queued items, the next one first. In a queue with an order of its own: in no order.
	Ready []T
	// Processing are the items that workers have, the one that was taken first in front.
	Processing []T
	// Again are those of Processing that Done will queue again.
	Again []T
	// Waiting are the items whose time has not come, the next one first. A Typed has none.
	Waiting []Waiting[T]
}

// Waiting is an item that joins the queue at Due.
type Waiting[T comparable] struct {
	Item T
	Due  time.Time
}

// Snapshot copies the content of the queue, under its lock: it costs what the queue holds.
func (q *Typed[T]) Snapshot() Snapshot[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	var s Snapshot[T]
	for e := q.ready.first; e != nil; e = e.next {
		s.Ready = append(s.Ready, e.item)
	}
	if q.order != nil {
		for e := range q.entries.all() {
			if e.phase == queued {
				s.Ready = append(s.Ready, e.item)
			}
		}
	}
	for e := q.working.first; e != nil; e = e.next {
		s.Processing = append(s.Processing, e.item)
		if e.phase == again {
			s.Again = append(s.Again, e.item)
		}
	}
	return s
}

// Snapshot copies the content of the queue and of what waits to join it: two moments, one shortly after the other. Of a
// queue of the owner's own it shows only what waits, unless that has a Snapshot too.
func (q *TypedDelayingQueue[T]) Snapshot() Snapshot[T] {
	var s Snapshot[T]
	if queue, ok := q.TypedInterface.(interface{ Snapshot() Snapshot[T] }); ok {
		s = queue.Snapshot()
	}
	q.mu.Lock()
	heap := slices.Clone(q.heap)
	for _, w := range heap {
		s.Waiting = append(s.Waiting, Waiting[T]{Item: w.item, Due: w.due})
	}
	q.mu.Unlock()
	slices.SortStableFunc(s.Waiting, func(a, b Waiting[T]) int { return a.Due.Compare(b.Due) })
	return s
}
