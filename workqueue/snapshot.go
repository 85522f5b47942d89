// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"math"
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
	// Priorities are those of Ready and Waiting items that are not 0, in a queue with priorities.
	Priorities map[T]int
	// Held are the Ready items that no worker may get now, with their groups: each has as many
	// workers as it may.
	Held map[T]Group
}

// Waiting is an item that is added to the queue at Due.
type Waiting[T comparable] struct {
	Item     T
	Due      time.Time
	Failures int // that the limiter remembers
	Priority int
}

// Snapshot copies the content of the queue under its lock, in time proportional to the content. See
// Partial for large queues.
func (q *Typed[T]) Snapshot() Snapshot[T] {
	return q.SnapshotOf(0, math.MaxInt).Snapshot
}

// Snapshot copies the content of the queue, and shortly after it the waiting items.
func (q *TypedDelayingQueue[T]) Snapshot() Snapshot[T] {
	p := Part[T]{Snapshot: q.ContextInterface.Snapshot()}
	q.showWaiting(&p, 0, math.MaxInt)
	return p.Snapshot
}
