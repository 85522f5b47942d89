// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// CheckLaws fails t where Q1, Q2, F1 or F2 do not hold. TestModel_WaitingWorkers checks Q3.
func (q *Typed[T]) CheckLaws(t testing.TB) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	queue, ok := q.queue.(*fifo[T])
	if !ok {
		return
	}
	queue.checkLaws(t)
	queued := map[T]bool{}
	for _, item := range queue.slice[queue.first:] {
		_, dirty := q.dirty[item]
		_, processing := q.processing[item]
		require.True(t, dirty && !processing, "Q1: %v", item)
		queued[item] = true
	}
	require.Len(t, queued, queue.Len(), "Q1: each once")
	for item := range q.dirty {
		_, processing := q.processing[item]
		require.True(t, queued[item] || processing, "Q1: %v is not queued", item)
	}
}

func (f *fifo[T]) checkLaws(t testing.TB) {
	t.Helper()
	var zero T
	require.GreaterOrEqual(t, f.Len(), 0, "F1")
	for _, slot := range f.slice[:f.first] {
		require.Equal(t, zero, slot, "F2")
	}
	for _, slot := range f.slice[len(f.slice):cap(f.slice)] {
		require.Equal(t, zero, slot, "F2")
	}
}

// SmallLimits lowers the limits of the queues until the test ends, so that a few items cross them.
func SmallLimits(t testing.TB) {
	items, slots, entries := keptItems, keptSlots, entriesAtOnce
	t.Cleanup(func() { keptItems, keptSlots, entriesAtOnce = items, slots, entries })
	keptItems, keptSlots, entriesAtOnce = 2, 2, 2
}

// MostDirty is what the set of dirty items has room for, and Slots the size of the fifo.
func (q *Typed[T]) MostDirty() int { return q.mostDirty }
func (q *Typed[T]) Slots() int     { return cap(q.queue.(*fifo[T]).slice) }

// Slots is the size of the heap.
func (q *TypedDelayingQueue[T]) Slots() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return cap(q.heap)
}

// Keeps reports whether AddAfter keeps items for a drain.
func (q *TypedDelayingQueue[T]) Keeps() bool { return q.isKeeping() }

// CheckLaws fails t where D1 to D3 do not hold, or the heap's order or a law of the Typed does not.
func (q *TypedDelayingQueue[T]) CheckLaws(t testing.TB) {
	t.Helper()
	if below, ok := q.ContextInterface.(*Typed[T]); ok {
		below.CheckLaws(t)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	require.Len(t, q.heap, len(q.waiting), "D1")
	for i, w := range q.heap {
		require.Same(t, w, q.waiting[w.item], "D1")
		require.Equal(t, i, w.index, "the heap's index")
		require.False(t, i > 0 && q.heap.Less(i, (i-1)/2), "the heap's order")
	}
	if len(q.heap) > 0 && !q.stopped {
		require.NotNil(t, q.stop, "D2")
		require.False(t, q.firesAt.After(q.heap[0].due), "D2")
	}
	if q.stopped {
		require.True(t, q.keeps || len(q.heap) == 0, "D3")
		require.Nil(t, q.stop, "D3")
	}
	for _, w := range q.heap[:cap(q.heap)][len(q.heap):] {
		require.Nil(t, w, "a removed item stays reachable")
	}
}

// CheckLimiter fails t where R3 or R4 do not hold for an exponential limiter.
func CheckLimiter[T comparable](t testing.TB, limiter TypedRateLimiter[T]) {
	t.Helper()
	f := &limiter.(*TypedItemExponentialFailureRateLimiter[T]).failures
	f.mu.Lock()
	defer f.mu.Unlock()
	require.LessOrEqual(t, f.lenLocked(), f.maxLen, "R3")
	for item := range f.young {
		require.NotContains(t, f.old, item, "R4")
	}
}

// SetMaxRemembered changes how many items an exponential limiter remembers at most.
func SetMaxRemembered[T comparable](limiter TypedRateLimiter[T], maxLen int) {
	limiter.(*TypedItemExponentialFailureRateLimiter[T]).maxLen = maxLen
}

// Remembered is how long a limiter remembers at least.
const Remembered time.Duration = minRemembered

// CheckLaws fails t where Q1, Q4, T1 or T2 do not hold. The tests of a Fair check the others.
func (q *Fair[T]) CheckLaws(t testing.TB) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	queued, again, known := 0, 0, map[*group[T]]int{}
	for item, e := range q.known {
		require.Equal(t, item, e.item, "Q1")
		known[e.group]++
		if e.part != nil {
			queued++
			require.Equal(t, e.priority, e.part.level.priority, "Q4")
			require.False(t, e.again, "Q1")
		}
		if e.again {
			again++
		}
	}
	require.Equal(t, again, q.again)
	require.Equal(t, len(q.known), queued+q.processing.len, "Q1")
	working := map[*group[T]]int{}
	q.processing.all(func(e *entry[T]) bool {
		require.Same(t, e, q.known[e.item], "Q1")
		require.Nil(t, e.part, "Q1")
		working[e.group]++
		return true
	})
	q.turns.checkLaws(t, queued)
	require.Len(t, q.turns.groups, len(known), "T1")
	for g, n := range known {
		require.Same(t, g, q.turns.groups[g.name], "T1")
		require.Equal(t, n, g.known, "T1")
		require.Equal(t, working[g], g.working)
		require.True(t, g.limit == 0 || g.working <= g.limit, "the limit of %s", g.name)
	}
}

func (q *turns[T]) checkLaws(t testing.TB, queued int) {
	t.Helper()
	ready, held, waiting := 0, 0, 0
	for _, l := range q.levels {
		require.NotEmpty(t, l.parts, "T1")
		turns := 0
		for g, p := range l.parts {
			require.Positive(t, p.items.len, "T1")
			require.Same(t, p, g.parts[p.index])
			require.Equal(t, !g.isFull(), p.turn != nil, "T2")
			if p.turn == nil {
				held += p.items.len
				continue
			}
			ready += p.items.len
			turns++
			require.True(t, p.left > 0 && p.left <= g.weight, "the rest of a turn")
		}
		require.Equal(t, turns, l.turns.Len(), "T2")
		if turns > 0 {
			waiting++
			require.Same(t, l, q.waiting[l.index], "T2")
		}
	}
	require.Len(t, q.waiting, waiting, "T2")
	require.Equal(t, waiting, q.longest.Len(), "T2")
	require.Equal(t, []int{ready, held}, []int{q.ready, q.held}, "T2")
	require.Equal(t, queued, ready+held, "Q1")
	since := uint64(0)
	for at := q.longest.Front(); at != nil; at = at.Next() {
		l := at.Value.(*level[T])
		require.GreaterOrEqual(t, l.since, since, "that which has waited longest is first")
		since = l.since
	}
}

// Known is the number of items and groups that a Fair knows, and of levels.
func (q *Fair[T]) Known() int { return len(q.known) + len(q.turns.groups) + len(q.turns.levels) }

// HasReady reports whether a Get would not wait.
func (q *Fair[T]) HasReady() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.turns.ready > 0
}
