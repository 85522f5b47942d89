// SPDX-License-Identifier: Apache-2.0

package workqueue

import "time"

// maxUnused is how many entries a queue keeps to use again.
const maxUnused = 1024

// entry is one item between Add and Done. It stands in one line at a time.
type entry[T comparable] struct {
	item      T
	phase     phase
	addedAt   time.Time // with metrics: when it became queued or again
	startedAt time.Time // with metrics: when a worker got it

	prev, next *entry[T]
}

// line is a list of entries that costs nothing but the entries: the links are in them.
type line[T comparable] struct {
	first, last *entry[T]
	len         int
}

func (l *line[T]) push(e *entry[T]) {
	e.prev = l.last
	if l.last == nil {
		l.first = e
	} else {
		l.last.next = e
	}
	l.last = e
	l.len++
}

func (l *line[T]) remove(e *entry[T]) {
	if e.prev == nil {
		l.first = e.next
	} else {
		e.prev.next = e.next
	}
	if e.next == nil {
		l.last = e.prev
	} else {
		e.next.prev = e.prev
	}
	e.prev, e.next = nil, nil
	l.len--
}

// newEntryLocked makes item known, as queued.
func (q *Typed[T]) newEntryLocked(item T) *entry[T] {
	e := q.unused.first
	if e == nil {
		e = new(entry[T])
	} else {
		q.unused.remove(e)
	}
	e.item = item
	q.entries[item] = e
	return e
}

// reuseLocked keeps e for another item. Nothing of the item it was for stays in it.
func (q *Typed[T]) reuseLocked(e *entry[T]) {
	if q.unused.len == maxUnused {
		return
	}
	*e = entry[T]{}
	q.unused.push(e)
}
