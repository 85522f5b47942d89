// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Snapshot is the content of a queue at one moment, for messages and debug pages.
type Snapshot[T comparable] struct {
	// Ready are the queued items, the next one first. With a Config.Order their order is undefined.
	Ready []T
	// Processing are the items that workers have, longest first.
	Processing []T
	// Again are those of Processing that are dirty: Done will queue them again.
	Again []T
	// Waiting are the items that are due later, the next one first. A Typed has no such items.
	Waiting []Waiting[T]
	// Taken is the number of items that Get has returned.
	Taken uint64
	// Limited is the number of items that the limiter remembers: see Tracker.
	Limited int
}

// Waiting is an item that is added to the queue at Due.
type Waiting[T comparable] struct {
	Item     T
	Due      time.Time
	Failures int // that the limiter remembers
}

// Snapshot copies the content of the queue under its lock, in time proportional to the content.
func (q *Typed[T]) Snapshot() Snapshot[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := Snapshot[T]{Taken: q.gets}
	if fifo, ok := q.queue.(*fifo[T]); ok {
		s.Ready = slices.Clone(fifo.slice[fifo.first:])
	} else {
		for item := range q.dirty {
			if _, processing := q.processing[item]; !processing {
				s.Ready = append(s.Ready, item)
			}
		}
	}
	s.Processing = slices.Collect(maps.Keys(q.processing))
	slices.SortFunc(s.Processing, func(a, b T) int {
		return cmp.Compare(q.processing[a].number, q.processing[b].number)
	})
	for _, item := range s.Processing {
		if _, dirty := q.dirty[item]; dirty {
			s.Again = append(s.Again, item)
		}
	}
	return s
}

// Snapshot copies the content of the queue, and shortly after it the waiting items.
func (q *TypedDelayingQueue[T]) Snapshot() Snapshot[T] {
	s := q.ContextInterface.Snapshot()
	waiting := q.copyWaiting()
	slices.SortFunc(waiting, func(a, b waitingItem[T]) int { return a.compare(&b) })
	for _, w := range waiting {
		s.Waiting = append(s.Waiting, Waiting[T]{Item: w.item, Due: w.due})
	}
	return s
}

func (q *TypedDelayingQueue[T]) copyWaiting() []waitingItem[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting := make([]waitingItem[T], 0, len(q.heap))
	for _, w := range q.heap {
		waiting = append(waiting, *w)
	}
	return waiting
}
