// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// CheckLaws fails t where Q1 to Q4, T1 or T2 do not hold.
func (q *Typed[T]) CheckLaws(t testing.TB) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.entries.checkLaws(t)

	ready := map[*entry[T]]bool{}
	for e := q.ready.first; e != nil; e = e.next {
		require.Equal(t, queued, e.phase, "Q2: %v is in the ready line", e.item)
		ready[e] = true
	}
	require.Len(t, ready, q.ready.len, "Q2: each once")
	working := map[*entry[T]]bool{}
	for e := q.working.first; e != nil; e = e.next {
		require.Contains(t, []phase{processing, again}, e.phase, "Q3: %v is in the working list", e.item)
		working[e] = true
	}
	require.Len(t, working, q.working.len, "Q3: each once")
	if q.order == nil {
		require.Equal(t, q.entries.len, len(ready)+len(working), "Q1")
	}
	for e := range q.entries.all() {
		require.True(t, ready[e] || working[e] || q.order != nil, "Q1: %v is in no line", e.item)
	}
	if q.readyLenLocked() > 0 && len(q.asleep) > 0 {
		require.True(t, q.waking, "Q4: items are ready and workers sleep, and none is on its way")
	}
}

func (t *table[T, E]) checkLaws(tb testing.TB) {
	tb.Helper()
	size := len(t.slots)
	require.Zero(tb, size&(size-1), "T1: %d slots", size)
	require.LessOrEqual(tb, 4*t.len, 3*size, "T1")
	mask := uint64(size - 1)
	found := 0
	for i, s := range t.slots {
		if s.free() {
			continue
		}
		found++
		for home := s.hash & mask; home != uint64(i); home = (home + 1) & mask {
			require.False(tb, t.slots[home].free(), "T2: %v has a free slot before it", s.element)
		}
	}
	require.Equal(tb, t.len, found)
}

// Slots is the size of the table, and Unused how many entries are kept.
func (q *Typed[T]) Slots() int  { return len(q.entries.slots) }
func (q *Typed[T]) Unused() int { return q.unused.len }

// CheckLaws fails t where D1 to D3, H1 or H2 do not hold, or a law of the Typed below.
func (q *TypedDelayingQueue[T]) CheckLaws(t testing.TB) {
	t.Helper()
	if below, ok := q.TypedInterface.(*Typed[T]); ok {
		below.CheckLaws(t)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.byItem.checkLaws(t)
	require.Equal(t, q.byItem.len, len(q.heap), "D1")
	for i, w := range q.heap {
		require.Equal(t, i, w.index, "H2")
		require.False(t, w.before(q.heap[max(i-1, 0)/2]), "H1")
		require.Same(t, w, q.byItem.find(w.item, w.hash), "D1")
	}
	if len(q.heap) > 0 && !q.joining {
		require.NotNil(t, q.alarm, "D2")
		require.False(t, q.rings.After(q.heap[0].due), "D2")
	}
	if q.stopped {
		require.Empty(t, q.heap, "D3")
		require.Nil(t, q.alarm, "D3")
	}
	for _, w := range q.heap[:cap(q.heap)][len(q.heap):] {
		require.Nil(t, w, "a slot that was left keeps an item alive")
	}
}

// CheckLaws checks the delaying queue.
func (q *TypedRateLimitingQueue[T]) CheckLaws(t testing.TB) {
	t.Helper()
	q.TypedDelayingInterface.(*TypedDelayingQueue[T]).CheckLaws(t)
}

// SetMaxRemembered changes how many items an exponential limiter remembers at most.
func SetMaxRemembered[T comparable](limiter TypedRateLimiter[T], maxLen int) {
	limiter.(*TypedItemExponentialFailureRateLimiter[T]).counts.maxLen = maxLen
}

// Remembered is how long a limiter remembers at least.
const Remembered time.Duration = minRemembered
