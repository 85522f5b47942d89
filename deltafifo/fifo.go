// SPDX-License-Identifier: Apache-2.0

package deltafifo

// longQueue is the capacity above which an empty queue gives its memory back.
const longQueue = 1024

// fifo is a first-in, first-out list: a slice, and the index of its oldest item.
//
//	F1  0 <= head <= len(slots); head = 0 if the list is empty
//	F2  slots[:head], and the slots after len(slots), are zero: nothing popped stays reachable
type fifo[T any] struct {
	slots []T
	head  int
}

// items returns the items, oldest first. The slice is valid until the next push or pop.
func (q *fifo[T]) items() []T { return q.slots[q.head:] }

// push moves the items to the front if the slice is full and half of it is free. So it takes
// constant time on average.
func (q *fifo[T]) push(item T) {
	if len(q.slots) == cap(q.slots) && q.head > len(q.slots)/2 {
		n := copy(q.slots, q.items())
		clear(q.slots[n:])
		q.slots, q.head = q.slots[:n], 0
	}
	q.slots = append(q.slots, item)
}

// pop removes the n oldest items. It reports whether it gave memory back.
func (q *fifo[T]) pop(n int) (released bool) {
	clear(q.slots[q.head : q.head+n])
	q.head += n
	if q.head < len(q.slots) {
		return false
	}
	q.slots, q.head = q.slots[:0], 0
	if cap(q.slots) <= longQueue {
		return false
	}
	q.slots = nil
	return true
}
