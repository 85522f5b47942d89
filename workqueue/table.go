// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"hash/maphash"
	"iter"
)

const (
	minSlots    = 16   // of an empty table
	shrinkSlots = 4096 // what is no larger does not shrink
)

// table finds elements by item. It is an open-addressed hash table, and asks for an item's hash once, for looking it up
// and for putting it in or taking it out: a map would compute it for each. A large table shrinks when it empties.
//
//	T1  len(slots) is a power of two, and a quarter of the slots is free at least
//	T2  no slot is free between slots[hash % len(slots)], an element's home, and the slot that the element is in
type table[T comparable, E element[T]] struct {
	slots []slot[E]
	len   int
	seed  maphash.Seed
}

// element is a pointer to something that is about one item.
type element[T comparable] interface {
	comparable
	isAbout(item T) bool
}

// slot is free if its element is nil. The hash is here so that a search seldom touches elements that it does not want.
type slot[E comparable] struct {
	hash    uint64
	element E
}

func (s slot[E]) free() bool {
	var none E
	return s.element == none
}

func newTable[T comparable, E element[T]]() table[T, E] {
	return table[T, E]{slots: make([]slot[E], minSlots), seed: maphash.MakeSeed()}
}

// hash needs no lock: the seed never changes. It panics if item cannot be hashed.
func (t *table[T, E]) hash(item T) uint64 {
	return maphash.Comparable(t.seed, item)
}

// find returns the element about item, or nil.
func (t *table[T, E]) find(item T, hash uint64) E {
	mask := uint64(len(t.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.free() || s.hash == hash && s.element.isAbout(item) {
			return s.element
		}
	}
}

// insert puts in an element about an item that has none.
func (t *table[T, E]) insert(e E, hash uint64) {
	if 4*t.len == 3*len(t.slots) {
		t.resize(2 * len(t.slots))
	}
	t.place(slot[E]{hash, e})
	t.len++
}

func (t *table[T, E]) place(s slot[E]) {
	mask := uint64(len(t.slots) - 1)
	i := s.hash & mask
	for !t.slots[i].free() {
		i = (i + 1) & mask
	}
	t.slots[i] = s
}

// remove takes e out. For T2 it moves up each element of the run behind e that may stand in the slot that became free.
func (t *table[T, E]) remove(e E, hash uint64) {
	mask := uint64(len(t.slots) - 1)
	gap := hash & mask
	for t.slots[gap].element != e {
		gap = (gap + 1) & mask
	}
	for i := (gap + 1) & mask; !t.slots[i].free(); i = (i + 1) & mask {
		if home := t.slots[i].hash & mask; (i-home)&mask >= (i-gap)&mask {
			t.slots[gap], gap = t.slots[i], i
		}
	}
	t.slots[gap] = slot[E]{}
	t.len--
	if 16*t.len < len(t.slots) && len(t.slots) > shrinkSlots {
		t.resize(len(t.slots) / 2)
	}
}

func (t *table[T, E]) resize(size int) {
	old := t.slots
	t.slots = make([]slot[E], size)
	for _, s := range old {
		if !s.free() {
			t.place(s)
		}
	}
}

// clear takes everything out. The seed stays.
func (t *table[T, E]) clear() {
	t.slots, t.len = make([]slot[E], minSlots), 0
}

// all ranges over the elements, in no order.
func (t *table[T, E]) all() iter.Seq[E] {
	return func(yield func(E) bool) {
		for _, s := range t.slots {
			if !s.free() && !yield(s.element) {
				return
			}
		}
	}
}
