// SPDX-License-Identifier: Apache-2.0

package workqueue

// Queue is the order in which a Typed hands out its items. The Typed calls it under its lock: an
// implementation needs no lock of its own, and must not call the Typed.
type Queue[T comparable] interface {
	// Touch reports that an item that is in the queue was added again.
	Touch(item T)
	// Push adds an item that is not in the queue.
	Push(item T)
	// Len is the number of items in the queue.
	Len() int
	// Pop removes and returns the next item. It is called only if Len is positive.
	Pop() (item T)
}

// DefaultQueue returns the order first in, first out. Other orders can be built around it.
func DefaultQueue[T comparable]() Queue[T] {
	return &fifo[T]{}
}

// keptSlots is the number of slots that an empty fifo keeps.
const keptSlots = 4096

// fifo is a slice from which items are taken at the front.
//
//	F1  the queued items are slice[first:], the next one first
//	F2  the slots before first have the zero value, so that a popped item can be collected
type fifo[T comparable] struct {
	slice []T
	first int
}

// Len implements Queue.
func (f *fifo[T]) Len() int { return len(f.slice) - f.first }

// Touch implements Queue: an item keeps its place.
func (f *fifo[T]) Touch(T) {}

// Push implements Queue.
func (f *fifo[T]) Push(item T) { f.slice = append(f.slice, item) }

// Pop implements Queue. It moves the items to the front once half of the slice is free.
func (f *fifo[T]) Pop() T {
	var zero T
	item := f.slice[f.first]
	f.slice[f.first] = zero
	f.first++
	if f.first > len(f.slice)/2 {
		n := copy(f.slice, f.slice[f.first:])
		clear(f.slice[n:])
		f.slice, f.first = f.slice[:n], 0
		if n == 0 && cap(f.slice) > keptSlots {
			f.slice = nil
		}
	}
	return item
}
