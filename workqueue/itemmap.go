// SPDX-License-Identifier: Apache-2.0

package workqueue

import "hash/maphash"

// itemMap is a map from items to their waitingItems. It is faster than
//
//	map[T]*waitingItem[T]
//
// because that hashes all items again as it grows, which takes longer than the rest of AddAfter
// when a million items are added. Here the keys are hashes, and items with equal hashes are in a
// list.
//
//	M1  every waitingItem w of the map is in the list that begins with lists[w.hash]
//	M2  no list is empty, and no two waitingItems have the same item
type itemMap[T comparable] struct {
	hash  func(item T) uint64
	lists map[uint64]*waitingItem[T]
	len   int
}

func newItemMap[T comparable]() itemMap[T] {
	seed := maphash.MakeSeed()
	return itemMap[T]{
		hash:  func(item T) uint64 { return maphash.Comparable(seed, item) },
		lists: map[uint64]*waitingItem[T]{},
	}
}

// get returns item's waitingItem, or nil.
func (m *itemMap[T]) get(item T) *waitingItem[T] {
	w := m.lists[m.hash(item)]
	for w != nil && w.item != item {
		w = w.next
	}
	return w
}

// getOrAdd returns item's waitingItem. If there is none, it adds one.
func (m *itemMap[T]) getOrAdd(item T) (w *waitingItem[T], found bool) {
	hash := m.hash(item)
	first := m.lists[hash]
	for w := first; w != nil; w = w.next {
		if w.item == item {
			return w, true
		}
	}
	w = &waitingItem[T]{item: item, hash: hash, next: first}
	m.lists[hash] = w
	m.len++
	return w, false
}

// remove removes a waitingItem of the map.
func (m *itemMap[T]) remove(w *waitingItem[T]) {
	first := m.lists[w.hash]
	switch {
	case first != w:
		for first.next != w {
			first = first.next
		}
		first.next = w.next
	case w.next != nil:
		m.lists[w.hash] = w.next
	default:
		delete(m.lists, w.hash)
	}
	w.next = nil
	m.len--
}
