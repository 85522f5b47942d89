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

const (
	minRing  = 8    // slots of a ring that is not empty
	keepRing = 4096 // slots that an empty ring keeps
)

// fifo is a ring buffer.
//
//	F1  the items are ring[first], ring[first+1], ..., len of them, modulo len(ring)
//	F2  every other slot has the zero value, so that a popped item can be collected
//	F3  len(ring) is zero or a power of two
type fifo[T comparable] struct {
	ring  []T
	first int
	len   int
}

// Len implements Queue.
func (f *fifo[T]) Len() int { return f.len }

// Touch implements Queue: an item keeps its place.
func (f *fifo[T]) Touch(T) {}

// Push implements Queue.
func (f *fifo[T]) Push(item T) {
	if f.len == len(f.ring) {
		larger := make([]T, max(minRing, 2*len(f.ring)))
		n := copy(larger, f.ring[f.first:])
		copy(larger[n:], f.ring[:f.first])
		f.ring, f.first = larger, 0
	}
	f.ring[f.slot(f.len)] = item
	f.len++
}

// Pop implements Queue.
func (f *fifo[T]) Pop() T {
	var zero T
	item := f.ring[f.first]
	f.ring[f.first] = zero
	f.first = f.slot(1)
	f.len--
	if f.len == 0 && len(f.ring) > keepRing {
		f.ring, f.first = nil, 0
	}
	return item
}

// slot is the index of the n-th slot after the first.
func (f *fifo[T]) slot(n int) int {
	return (f.first + n) & (len(f.ring) - 1)
}

// items returns the queued items, the next one first.
func (f *fifo[T]) items() []T {
	var items []T
	for n := range f.len {
		items = append(items, f.ring[f.slot(n)])
	}
	return items
}
