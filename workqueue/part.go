// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"cmp"
	"maps"
	"slices"
)

// Part is a part of a Snapshot, for debug pages of queues of any size.
type Part[T comparable] struct {
	Snapshot[T]
	// Total has the lengths of the whole lists.
	Total Totals
	// Numbers are the places of the Ready items in the queue, from 1. They are nil with a
	// Config.Order.
	Numbers []int
}

// Totals are the lengths of the lists of a Snapshot.
type Totals struct{ Ready, Processing, Again, Waiting int }

// Partial is a queue that can show a part of its content. The queues of this package are; a queue
// that decorates one should be, too.
type Partial[T comparable] interface {
	// SnapshotOf returns the first limit items of each list. Its memory grows with limit alone, and
	// it holds the lock for the time of a Snapshot of so many items, and of a look at those that
	// workers have. Again has items of Processing.
	SnapshotOf(limit int) Part[T]
	// Find returns the items that match. It calls match for each item, without a lock. Under the
	// lock it copies parts of the Ready items, or all with a Config.Order, and a pointer to each
	// item that waits. An item that moves meanwhile may be found twice, or not.
	Find(match func(item T) bool) Part[T]
}

// SnapshotOf returns the first limit items of each list of a queue. If it is not Partial, it is
// copied whole.
func SnapshotOf[T comparable](queue interface{ Snapshot() Snapshot[T] }, limit int) Part[T] {
	if partial, ok := queue.(Partial[T]); ok {
		return partial.SnapshotOf(limit)
	}
	p := whole(queue.Snapshot())
	p.Ready, p.Numbers = p.Ready[:min(limit, len(p.Ready))], p.Numbers[:min(limit, len(p.Ready))]
	p.Processing = p.Processing[:min(limit, len(p.Processing))]
	p.Again = p.Again[:min(limit, len(p.Again))]
	p.Waiting = p.Waiting[:min(limit, len(p.Waiting))]
	return p
}

// Find returns the items of a queue that match. If it is not Partial, it is copied whole.
func Find[T comparable](
	queue interface{ Snapshot() Snapshot[T] }, match func(item T) bool,
) Part[T] {
	if partial, ok := queue.(Partial[T]); ok {
		return partial.Find(match)
	}
	other := func(item T) bool { return !match(item) }
	p := whole(queue.Snapshot())
	p.Numbers = slices.DeleteFunc(p.Numbers, func(n int) bool { return other(p.Ready[n-1]) })
	p.Ready = slices.DeleteFunc(p.Ready, other)
	p.Processing = slices.DeleteFunc(p.Processing, other)
	p.Again = slices.DeleteFunc(p.Again, other)
	p.Waiting = slices.DeleteFunc(p.Waiting, func(w Waiting[T]) bool { return other(w.Item) })
	return p
}

func whole[T comparable](s Snapshot[T]) Part[T] {
	p := Part[T]{Snapshot: s, Total: Totals{
		len(s.Ready), len(s.Processing), len(s.Again), len(s.Waiting)}}
	for i := range s.Ready {
		p.Numbers = append(p.Numbers, i+1)
	}
	return p
}

// SnapshotOf implements Partial.
func (q *Typed[T]) SnapshotOf(limit int) Part[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := Part[T]{Total: q.totalsLocked()}
	p.Taken = q.gets
	if fifo, ok := q.queue.(*fifo[T]); ok {
		p.Ready = slices.Clone(fifo.slice[fifo.first:][:min(limit, fifo.Len())])
		for i := range p.Ready {
			p.Numbers = append(p.Numbers, i+1)
		}
	} else {
		for item := range q.dirty {
			if len(p.Ready) == limit {
				break
			}
			if _, processing := q.processing[item]; !processing {
				p.Ready = append(p.Ready, item)
			}
		}
	}
	p.Processing = q.longestLocked(limit)
	p.Again = q.againLocked(p.Processing)
	return p
}

func (q *Typed[T]) totalsLocked() Totals {
	queued := q.queue.Len() // by Q1 the other dirty items are processing
	return Totals{Ready: queued, Processing: len(q.processing), Again: len(q.dirty) - queued}
}

// longestLocked returns the limit items that workers have had longest, the longest first.
func (q *Typed[T]) longestLocked(limit int) []T {
	number := func(item T) uint64 { return q.processing[item].number }
	if len(q.processing) <= limit {
		return slices.SortedFunc(maps.Keys(q.processing), func(a, b T) int {
			return cmp.Compare(number(a), number(b))
		})
	}
	var longest []T
	for item := range q.processing {
		if len(longest) >= limit && (limit == 0 || number(longest[limit-1]) < number(item)) {
			continue
		}
		at, _ := slices.BinarySearchFunc(longest, number(item), func(other T, n uint64) int {
			return cmp.Compare(number(other), n)
		})
		longest = slices.Insert(longest, at, item)
		longest = longest[:min(limit, len(longest))]
	}
	return longest
}

// againLocked returns those of the items that were added again while a worker has them.
func (q *Typed[T]) againLocked(processing []T) (again []T) {
	for _, item := range processing {
		if _, dirty := q.dirty[item]; dirty {
			again = append(again, item)
		}
	}
	return again
}

// partLen is the number of items that Find copies at once, under the lock.
const partLen = 1024

// Find implements Partial. A FIFO queue is read in parts: its items only move to its front, and
// Get counts how far.
func (q *Typed[T]) Find(match func(item T) bool) Part[T] {
	q.mu.Lock()
	p := Part[T]{Total: q.totalsLocked()}
	p.Taken = q.gets
	_, inOrder := q.queue.(*fifo[T])
	var unordered, processing []T
	for item := range q.processing {
		processing = append(processing, item)
	}
	for item := range q.dirty {
		if _, taken := q.processing[item]; !taken && !inOrder {
			unordered = append(unordered, item)
		}
	}
	q.mu.Unlock()

	p.Ready = keep(unordered, match)
	if inOrder {
		q.findInOrder(&p, match)
	}
	p.Processing = keep(processing, match)
	q.mu.Lock()
	defer q.mu.Unlock()
	p.Processing = slices.DeleteFunc(p.Processing, func(item T) bool {
		_, has := q.processing[item]
		return !has
	})
	slices.SortFunc(p.Processing, func(a, b T) int {
		return cmp.Compare(q.processing[a].number, q.processing[b].number)
	})
	p.Again = q.againLocked(p.Processing)
	return p
}

// findInOrder adds the items that match and were in the queue when p was made.
func (q *Typed[T]) findInOrder(p *Part[T], match func(item T) bool) {
	next, end := p.Taken, p.Taken+uint64(p.Total.Ready) // Gets that return these items
	var part [partLen]T
	for next < end {
		q.mu.Lock()
		fifo := q.queue.(*fifo[T])
		taken := q.gets
		next = max(next, taken)
		queued := fifo.slice[fifo.first:]
		n := copy(part[:], queued[min(next-taken, uint64(len(queued))):])
		q.mu.Unlock()
		if n == 0 {
			return
		}
		for i, item := range part[:n] {
			if at := next + uint64(i); at < end && match(item) {
				p.Ready = append(p.Ready, item)
				p.Numbers = append(p.Numbers, int(at-taken)+1)
			}
		}
		next += uint64(n)
	}
}

func keep[T any](items []T, match func(T) bool) []T {
	return slices.DeleteFunc(items, func(item T) bool { return !match(item) })
}

// SnapshotOf implements Partial.
func (q *TypedDelayingQueue[T]) SnapshotOf(limit int) Part[T] {
	p := SnapshotOf(q.ContextInterface, limit)
	waiting, total := q.firstWaiting(limit)
	p.setWaiting(waiting)
	p.Total.Waiting = total
	return p
}

// firstWaiting returns the limit items that are due first, and the number of all. All are copied
// under the lock, and ordered without it.
func (q *TypedDelayingQueue[T]) firstWaiting(limit int) (due []Waiting[T], total int) {
	q.mu.Lock()
	total = len(q.heap)
	if limit < total {
		defer q.mu.Unlock()
		return q.heap.first(limit), total
	}
	all := make([]waitingItem[T], 0, total)
	for _, w := range q.heap {
		all = append(all, *w)
	}
	q.mu.Unlock()
	slices.SortFunc(all, func(a, b waitingItem[T]) int { return a.compare(&b) })
	for _, w := range all {
		due = append(due, w.shown())
	}
	return due, total
}

// first returns the limit items that are due first, in their order. It looks at the children of
// those that it returns alone.
func (h waitHeap[T]) first(limit int) (due []Waiting[T]) {
	var candidates []int // indices, those that are due first last
	add := func(i int) {
		if i < len(h) {
			at, _ := slices.BinarySearchFunc(candidates, h[i],
				func(other int, w *waitingItem[T]) int { return w.compare(h[other]) })
			candidates = slices.Insert(candidates, at, i)
		}
	}
	for add(0); len(candidates) > 0 && len(due) < limit; {
		i := candidates[len(candidates)-1]
		candidates = candidates[:len(candidates)-1]
		due = append(due, h[i].shown())
		add(2*i + 1)
		add(2*i + 2)
	}
	return due
}

// Find implements Partial.
func (q *TypedDelayingQueue[T]) Find(match func(item T) bool) Part[T] {
	p := Find(q.ContextInterface, match)
	q.mu.Lock()
	waiting := slices.Clone(q.heap) // their items do not change
	q.mu.Unlock()
	p.Total.Waiting = len(waiting)
	waiting = keep(waiting, func(w *waitingItem[T]) bool { return match(w.item) })
	q.mu.Lock()
	defer q.mu.Unlock()
	slices.SortFunc(waiting, (*waitingItem[T]).compare)
	var shown []Waiting[T]
	for _, w := range waiting {
		if q.waiting[w.item] == w {
			shown = append(shown, w.shown())
		}
	}
	p.setWaiting(shown)
	return p
}

// SnapshotOf implements Partial.
func (q *TypedRateLimitingQueue[T]) SnapshotOf(limit int) Part[T] {
	p := q.TypedDelayingQueue.SnapshotOf(limit)
	q.limits(&p.Snapshot)
	return p
}

// Find implements Partial.
func (q *TypedRateLimitingQueue[T]) Find(match func(item T) bool) Part[T] {
	p := q.TypedDelayingQueue.Find(match)
	q.limits(&p.Snapshot)
	return p
}
