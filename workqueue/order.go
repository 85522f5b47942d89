// SPDX-License-Identifier: Apache-2.0

package workqueue

// DefaultQueue makes a first-in-first-out order, for an order of one's own to build on. A queue that is given none keeps
// the same order with less work.
func DefaultQueue[T comparable]() Queue[T] {
	return &fifo[T]{}
}

// fifo is a line of items that have no entries.
type fifo[T comparable] struct {
	items line[T]
}

func (f *fifo[T]) Touch(T) {}

func (f *fifo[T]) Push(item T) {
	f.items.push(&entry[T]{item: item})
}

func (f *fifo[T]) Len() int {
	return f.items.len
}

func (f *fifo[T]) Pop() T {
	e := f.items.first
	f.items.remove(e)
	return e.item
}
