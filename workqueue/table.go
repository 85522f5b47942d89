// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"hash/maphash"
	"iter"
)

const (
	minSlots    = 16   // of an empty table
	shrinkSlots = 4096 // what is no larger does not shrink
	maxUnused   = 1024 // how many entries are kept to use again
)

// table finds entries by item. It is an open-addressed hash table, and hashes an item once for each Add and each Done: a
// map would hash it once to look for it and again to put it in or take it out. A large one shrinks when it empties.
//
//	T1  len(slots) is a power of two, and a quarter of the slots is free at least
//	T2  no slot is free between slots[hash % len(slots)], an entry's home, and the slot that the entry is in
type table[T comparable] struct {
	slots  []slot[T]
	len    int
	seed   maphash.Seed
	unused *entry[T] // entries to use again, linked by next
	spare  int       // how many
}

// slot is free if it has no entry. The hash is copied here so that a search seldom touches entries that it does not want.
type slot[T comparable] struct {
	hash  uint64
	entry *entry[T]
}

func newTable[T comparable]() table[T] {
	return table[T]{slots: make([]slot[T], minSlots), seed: maphash.MakeSeed()}
}

func (t *table[T]) hash(item T) uint64 {
	return maphash.Comparable(t.seed, item)
}

// find returns item's entry, or nil.
func (t *table[T]) find(item T, hash uint64) *entry[T] {
	mask := uint64(len(t.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.entry == nil || s.hash == hash && s.entry.item == item {
			return s.entry
		}
	}
}

// insert makes an entry for an item that has none.
func (t *table[T]) insert(item T, hash uint64) *entry[T] {
	if 4*t.len == 3*len(t.slots) {
		t.resize(2 * len(t.slots))
	}
	e := t.unused
	if e == nil {
		e = new(entry[T])
	} else {
		t.unused, e.next = e.next, nil
		t.spare--
	}
	e.item, e.hash, e.phase = item, hash, queued
	t.place(slot[T]{hash, e})
	t.len++
	return e
}

func (t *table[T]) place(s slot[T]) {
	mask := uint64(len(t.slots) - 1)
	i := s.hash & mask
	for t.slots[i].entry != nil {
		i = (i + 1) & mask
	}
	t.slots[i] = s
}

// remove takes e out and keeps it to use again; nothing of its item stays in it. For T2 it moves up each entry of the run
// behind e that may stand in the slot that became free.
func (t *table[T]) remove(e *entry[T]) {
	mask := uint64(len(t.slots) - 1)
	free := e.hash & mask
	for t.slots[free].entry != e {
		free = (free + 1) & mask
	}
	for i := (free + 1) & mask; t.slots[i].entry != nil; i = (i + 1) & mask {
		if home := t.slots[i].hash & mask; (i-home)&mask >= (i-free)&mask {
			t.slots[free], free = t.slots[i], i
		}
	}
	t.slots[free] = slot[T]{}
	t.len--
	if t.spare < maxUnused {
		var none T
		e.item, e.next = none, t.unused
		t.unused = e
		t.spare++
	}
	if 16*t.len < len(t.slots) && len(t.slots) > shrinkSlots {
		t.resize(len(t.slots) / 2)
	}
}

func (t *table[T]) resize(size int) {
	old := t.slots
	t.slots = make([]slot[T], size)
	for _, s := range old {
		if s.entry != nil {
			t.place(s)
		}
	}
}

// all ranges over the entries, in no order.
func (t *table[T]) all() iter.Seq[*entry[T]] {
	return func(yield func(*entry[T]) bool) {
		for _, s := range t.slots {
			if s.entry != nil && !yield(s.entry) {
				return
			}
		}
	}
}
