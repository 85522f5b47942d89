// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"cmp"
	"slices"
	"time"
)

// Part is a part of a Snapshot, for debug pages of queues of any size. A page of a list has the
// items at some places at that moment. Items leave at the head: an item of the next page may have
// moved to the page before it meanwhile, and be on neither.
type Part[T comparable] struct {
	Snapshot[T]
	// Total has the lengths of the whole lists.
	Total Totals
	// Numbers are the places of the Ready items in the queue, from 1. They are nil with a
	// Config.Order.
	Numbers []int
	// LastDue is when the last item that waits is due. It is zero if none waits, or not known.
	LastDue time.Time
}

// Totals are the lengths of the lists of a Snapshot.
type Totals struct{ Ready, Processing, Again, Waiting int }

// Partial is a queue that can show a part of its content. The queues of this package are; a queue
// that decorates one should be, too.
type Partial[T comparable] interface {
	// SnapshotOf returns at most limit items of each list, after the first skip. Again has those of
	// Processing. Without skip, its memory grows with limit alone, and it holds the lock for the
	// time of a Snapshot of so many items, and of a look at those that workers have. With skip, it
	// copies 16 bytes for each item that waits, and skip items that workers have, and passes skip
	// items of a Fair under the lock. With a Config.Order two pages may have the same items.
	SnapshotOf(skip, limit int) Part[T]
	// Find returns the items that match. It calls match for each item, without a lock. Under the
	// lock it copies parts of the Ready items, or all with a Config.Order, and a pointer to each
	// item that waits. An item that moves meanwhile may be found twice, or not.
	Find(match func(item T) bool) Part[T]
}

// SnapshotOf returns at most limit items of each list of a queue, after the first skip. If it is
// not Partial, it is copied whole.
func SnapshotOf[T comparable](queue interface{ Snapshot() Snapshot[T] }, skip, limit int) Part[T] {
	if partial, ok := queue.(Partial[T]); ok {
		return partial.SnapshotOf(skip, limit)
	}
	p := whole(queue.Snapshot())
	p.Ready, p.Numbers = page(p.Ready, skip, limit), page(p.Numbers, skip, limit)
	p.Processing = page(p.Processing, skip, limit)
	p.Again = keep(p.Again, func(item T) bool { return slices.Contains(p.Processing, item) })
	p.Waiting = page(p.Waiting, skip, limit)
	return p
}

// page returns at most limit items of a list, after the first skip.
func page[T any](list []T, skip, limit int) []T {
	list = list[min(skip, len(list)):]
	return list[:min(limit, len(list))]
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
	if n := len(s.Waiting); n > 0 {
		p.LastDue = s.Waiting[n-1].Due
	}
	return p
}

// SnapshotOf implements Partial.
func (q *Typed[T]) SnapshotOf(skip, limit int) Part[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := Part[T]{Total: q.totalsLocked()}
	p.Taken = q.gets
	if fifo, ok := q.queue.(*fifo[T]); ok {
		p.Ready = slices.Clone(page(fifo.slice[fifo.first:], skip, limit))
		for i := range p.Ready {
			p.Numbers = append(p.Numbers, skip+i+1)
		}
	} else {
		passed := 0
		for item := range q.dirty {
			if len(p.Ready) == limit {
				break
			}
			if _, processing := q.processing[item]; processing {
				continue
			}
			if passed++; passed > skip {
				p.Ready = append(p.Ready, item)
			}
		}
	}
	p.Processing = q.longestLocked(skip, limit)
	p.Again = q.againLocked(p.Processing)
	return p
}

func (q *Typed[T]) totalsLocked() Totals {
	queued := q.queue.Len() // by Q1 the other dirty items are processing
	return Totals{Ready: queued, Processing: len(q.processing), Again: len(q.dirty) - queued}
}

// longestLocked returns a page of the items that workers have, the longest first.
func (q *Typed[T]) longestLocked(skip, limit int) (longest []T) {
	var numbers []uint64
	for _, work := range q.processing {
		numbers = append(numbers, work.number)
	}
	slices.Sort(numbers)
	numbers = page(numbers, skip, limit)
	if len(numbers) == 0 {
		return nil
	}
	longest = make([]T, len(numbers))
	for item, work := range q.processing {
		if at, shown := slices.BinarySearch(numbers, work.number); shown {
			longest[at] = item
		}
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
func (q *TypedDelayingQueue[T]) SnapshotOf(skip, limit int) Part[T] {
	p := SnapshotOf(q.ContextInterface, skip, limit)
	q.showWaiting(&p, skip, limit)
	return p
}

// showWaiting adds a page of the items that wait, those that are due first at its beginning.
func (q *TypedDelayingQueue[T]) showWaiting(p *Part[T], skip, limit int) {
	q.mu.Lock()
	p.Total.Waiting, p.LastDue = len(q.heap), q.heap.lastDue()
	if skip == 0 && limit < len(q.heap) {
		defer q.mu.Unlock()
		p.setWaiting(q.heap.first(limit))
		return
	}
	type wait struct {
		due time.Duration // from LastDue on, so not positive
		w   *waitingItem[T]
	}
	all := make([]wait, 0, len(q.heap))
	for _, w := range q.heap {
		all = append(all, wait{w.due.Sub(p.LastDue), w})
	}
	q.mu.Unlock()
	slices.SortFunc(all, func(a, b wait) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.w.seq, b.w.seq))
	})

	q.mu.Lock()
	defer q.mu.Unlock()
	var shown []Waiting[T]
	for _, wait := range page(all, skip, limit) {
		if q.waiting[wait.w.item] == wait.w {
			shown = append(shown, wait.w.shown())
		}
	}
	p.setWaiting(shown)
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
	waiting, lastDue := slices.Clone(q.heap), q.heap.lastDue() // their items do not change
	q.mu.Unlock()
	p.Total.Waiting, p.LastDue = len(waiting), lastDue
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
func (q *TypedRateLimitingQueue[T]) SnapshotOf(skip, limit int) Part[T] {
	p := q.TypedDelayingQueue.SnapshotOf(skip, limit)
	q.limits(&p.Snapshot)
	return p
}

// Find implements Partial.
func (q *TypedRateLimitingQueue[T]) Find(match func(item T) bool) Part[T] {
	p := q.TypedDelayingQueue.Find(match)
	q.limits(&p.Snapshot)
	return p
}
