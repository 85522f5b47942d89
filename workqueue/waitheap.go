// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"cmp"
	"container/heap"
	"time"
)

// waitingItem is an item that is due later.
type waitingItem[T comparable] struct {
	item  T
	due   time.Time
	seq   uint64 // orders items with equal times: the first AddAfter first
	index int    // in the waitHeap

	priority int // the highest of its adds
}

func (w *waitingItem[T]) compare(other *waitingItem[T]) int {
	return cmp.Or(w.due.Compare(other.due), cmp.Compare(w.seq, other.seq))
}

func (w *waitingItem[T]) shown() Waiting[T] {
	return Waiting[T]{Item: w.item, Due: w.due, Priority: w.priority}
}

// waitHeap is a heap.Interface: heap[0] is due first, and heap[i].index == i.
type waitHeap[T comparable] []*waitingItem[T]

// Len implements heap.Interface.
func (h waitHeap[T]) Len() int { return len(h) }

// Less implements heap.Interface.
func (h waitHeap[T]) Less(i, j int) bool { return h[i].compare(h[j]) < 0 }

// Swap implements heap.Interface.
func (h waitHeap[T]) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *waitHeap[T]) Push(w any) {
	item := w.(*waitingItem[T])
	item.index = len(*h)
	*h = append(*h, item)
}

// Pop implements heap.Interface. It clears the slot, so that the item can be collected.
func (h *waitHeap[T]) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return w
}

// waitLocked makes item wait until due. An item that waits already keeps the earlier time and the
// higher priority.
func (q *TypedDelayingQueue[T]) waitLocked(item T, due time.Time, priority int) {
	w, waits := q.waiting[item]
	if !waits {
		q.seq++
		w = &waitingItem[T]{item: item, due: due, seq: q.seq, priority: priority}
		q.waiting[item] = w
		heap.Push(&q.heap, w)
		return
	}
	w.priority = max(w.priority, priority)
	if due.Before(w.due) {
		w.due = due
		heap.Fix(&q.heap, w.index)
	}
}

// Due returns the time when item is added, and whether it waits. Snapshot lists all that wait.
func (q *TypedDelayingQueue[T]) Due(item T) (due time.Time, waits bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w, waits := q.waiting[item]
	if waits {
		due = w.due
	}
	return due, waits
}

// Reschedule makes an item that waits wait for duration from now on, which may be shorter or longer
// than before, and reports whether it waits. If duration is not positive, the item is due, and a
// goroutine adds it. Its priority stays.
func (q *TypedDelayingQueue[T]) Reschedule(item T, duration time.Duration) bool {
	due := q.clock.Now().Add(max(0, duration))

	q.mu.Lock()
	defer q.mu.Unlock()
	w, waits := q.waiting[item]
	if waits {
		w.due = due
		heap.Fix(&q.heap, w.index)
		q.setTimerLocked()
	}
	return waits
}

// waits returns the number of items that wait, and the time until the last of them is due.
func (q *TypedDelayingQueue[T]) waits() (n int, longest time.Duration) {
	now := q.clock.Now()

	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.heap), max(0, q.heap.lastDue().Sub(now))
}

// lastDue returns when the last item is due, or the zero time. That item is a leaf.
func (h waitHeap[T]) lastDue() (last time.Time) {
	for _, leaf := range h[len(h)/2:] {
		if leaf.due.After(last) {
			last = leaf.due
		}
	}
	return last
}

func (q *TypedDelayingQueue[T]) removeLocked(w *waitingItem[T]) {
	delete(q.waiting, w.item)
	heap.Remove(&q.heap, w.index)
	if len(q.heap) == 0 && cap(q.heap) > keptItems {
		q.waiting, q.heap = map[T]*waitingItem[T]{}, nil
	}
}

// takeDue removes and returns the item that is due first, if it is due.
func (q *TypedDelayingQueue[T]) takeDue() (item T, priority int, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.heap) == 0 || q.heap[0].due.After(q.clock.Now()) {
		return item, 0, false
	}
	w := q.heap[0]
	q.removeLocked(w)
	return w.item, w.priority, true
}
