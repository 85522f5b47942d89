// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"container/heap"
	"time"
)

// waiting is an item whose time has not come.
type waiting[T comparable] struct {
	item  T
	due   time.Time
	seq   uint64 // the order of arrival decides between equal dues
	index int    // in the heap
}

// waitHeap has what is due first in front. It is container/heap's: Push and Pop are for that package.
//
//	H1  no element is due before its parent
//	H2  heap[i].index == i
type waitHeap[T comparable] []*waiting[T]

func (h waitHeap[T]) Len() int { return len(h) }

func (h waitHeap[T]) Less(i, j int) bool {
	if h[i].due.Equal(h[j].due) {
		return h[i].seq < h[j].seq
	}
	return h[i].due.Before(h[j].due)
}

func (h waitHeap[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *waitHeap[T]) Push(x any) {
	w := x.(*waiting[T])
	w.index = len(*h)
	*h = append(*h, w)
}

// Pop clears the slot it leaves, so that the heap does not keep alive what it handed out.
func (h *waitHeap[T]) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return w
}

// addLocked makes item wait until due. An item that waits already keeps the earlier time.
func (q *TypedDelayingQueue[T]) addLocked(item T, due time.Time) {
	if w := q.byItem[item]; w != nil {
		if due.Before(w.due) {
			w.due = due
			heap.Fix(&q.heap, w.index)
		}
		return
	}
	q.seq++
	w := &waiting[T]{item: item, due: due, seq: q.seq}
	q.byItem[item] = w
	heap.Push(&q.heap, w)
}

// removeLocked makes item wait no longer, and reports whether it did.
func (q *TypedDelayingQueue[T]) removeLocked(item T) bool {
	w := q.byItem[item]
	if w == nil {
		return false
	}
	delete(q.byItem, item)
	heap.Remove(&q.heap, w.index)
	return true
}

// nextLocked takes out the item that is due first, if it is due by now.
func (q *TypedDelayingQueue[T]) nextLocked(now time.Time) (item T, ok bool) {
	if len(q.heap) == 0 || q.heap[0].due.After(now) {
		return item, false
	}
	w := heap.Pop(&q.heap).(*waiting[T])
	delete(q.byItem, w.item)
	return w.item, true
}
