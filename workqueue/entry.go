// SPDX-License-Identifier: Apache-2.0

package workqueue

import "time"

// entry is one item between Add and Done. It stands in one line at a time.
type entry[T comparable] struct {
	item      T
	hash      uint64 // of item
	phase     phase
	addedAt   time.Duration // with metrics: when it became queued or again
	startedAt time.Duration // with metrics: when a worker got it

	prev, next *entry[T] // in the line
}

func (e *entry[T]) isAbout(item T) bool { return e.item == item }

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

// maxUnused is how many entries a queue keeps to use again.
const maxUnused = 1024

// enterLocked makes item known, as queued.
func (q *Typed[T]) enterLocked(item T, hash uint64) *entry[T] {
	e := q.unused.first
	if e == nil {
		e = new(entry[T])
	} else {
		q.unused.remove(e)
	}
	e.item, e.hash, e.phase, e.addedAt = item, hash, queued, q.now()
	q.entries.insert(e, hash)
	return e
}

// leaveLocked makes e's item unknown. Nothing of it stays in an entry that is kept.
func (q *Typed[T]) leaveLocked(e *entry[T]) {
	q.entries.remove(e, e.hash)
	if q.unused.len < maxUnused {
		var none T
		e.item = none
		q.unused.push(e)
	}
}
