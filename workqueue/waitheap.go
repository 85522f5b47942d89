// SPDX-License-Identifier: Apache-2.0

package workqueue

import "time"

// waiting is an item whose time has not come.
type waiting[T comparable] struct {
	item  T
	hash  uint64 // of item
	due   time.Time
	seq   uint64 // the order of arrival decides between equal dues
	index int    // in the heap
}

func (w *waiting[T]) isAbout(item T) bool { return w.item == item }

func (w *waiting[T]) before(other *waiting[T]) bool {
	if w.due.Equal(other.due) {
		return w.seq < other.seq
	}
	return w.due.Before(other.due)
}

// waitHeap has what is due first in front.
//
//	H1  heap[i] is not before its parent, heap[(i-1)/2]
//	H2  heap[i].index == i
type waitHeap[T comparable] []*waiting[T]

func (h *waitHeap[T]) push(w *waiting[T]) {
	*h = append(*h, w)
	h.up(w, len(*h)-1)
}

// remove takes out heap[i]. It clears the slot that becomes free, so that the heap keeps nothing alive.
func (h *waitHeap[T]) remove(i int) {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	if i < last {
		h.up(w, h.down(i))
	}
}

// up puts w where H1 wants it, on the way from slot i, which is free, to the front.
func (h waitHeap[T]) up(w *waiting[T], i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !w.before(h[parent]) {
			break
		}
		h.set(i, h[parent])
		i = parent
	}
	h.set(i, w)
}

// down moves the free slot i to the leaves: the earlier child takes its place each time. It returns where it ends.
func (h waitHeap[T]) down(i int) int {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return i
		}
		if child+1 < len(h) && h[child+1].before(h[child]) {
			child++
		}
		h.set(i, h[child])
		i = child
	}
}

func (h waitHeap[T]) set(i int, w *waiting[T]) {
	h[i], w.index = w, i
}

// addLocked makes item wait until due. An item that waits already keeps the earlier time.
func (q *TypedDelayingQueue[T]) addLocked(item T, hash uint64, due time.Time) {
	if w := q.byItem.find(item, hash); w != nil {
		if due.Before(w.due) {
			w.due = due
			q.heap.up(w, w.index)
		}
		return
	}
	q.seq++
	w := &waiting[T]{item: item, hash: hash, due: due, seq: q.seq}
	q.byItem.insert(w, hash)
	q.heap.push(w)
}

func (q *TypedDelayingQueue[T]) removeLocked(w *waiting[T]) {
	q.byItem.remove(w, w.hash)
	q.heap.remove(w.index)
}

// nextLocked takes out the item that is due first, if it is due by now.
func (q *TypedDelayingQueue[T]) nextLocked(now time.Time) (item T, ok bool) {
	if len(q.heap) == 0 || q.heap[0].due.After(now) {
		return item, false
	}
	w := q.heap[0]
	q.removeLocked(w)
	return w.item, true
}
