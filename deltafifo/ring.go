// SPDX-License-Identifier: Apache-2.0

package deltafifo

// ring is a first-in, first-out list that reuses its slots.
//
//	R1  the items are buf[(head+i) % len(buf)] for 0 <= i < n, oldest first
//	R2  every other slot is zero, so that what was popped can be collected
//	R3  len(buf) is zero or a power of two
type ring[T any] struct {
	buf  []T
	head int
	n    int
}

const (
	minRingLen  = 8
	keepRingLen = 1024 // an empty ring larger than this gives its memory back
)

func (r *ring[T]) len() int { return r.n }

// at returns item i, counted from the oldest. The pointer holds until the next push or pop.
func (r *ring[T]) at(i int) *T { return &r.buf[(r.head+i)&(len(r.buf)-1)] }

func (r *ring[T]) push(item T) {
	if r.n == len(r.buf) {
		r.grow(1)
	}
	r.n++
	*r.at(r.n - 1) = item
}

// pop takes out the oldest item of a ring that is not empty.
func (r *ring[T]) pop() T {
	var zero T
	slot := r.at(0)
	item := *slot
	*slot = zero
	r.head = (r.head + 1) & (len(r.buf) - 1)
	r.n--
	return item
}

// grow makes room for more items.
func (r *ring[T]) grow(more int) {
	size := max(len(r.buf), minRingLen)
	for size < r.n+more {
		size *= 2
	}
	if size == len(r.buf) {
		return
	}
	buf := make([]T, size)
	for i := range r.n {
		buf[i] = *r.at(i)
	}
	r.buf, r.head = buf, 0
}

// release drops the buffer of a ring that was large once and is empty now, and reports whether it did.
func (r *ring[T]) release() bool {
	if r.n > 0 || len(r.buf) <= keepRingLen {
		return false
	}
	r.buf, r.head = nil, 0
	return true
}
