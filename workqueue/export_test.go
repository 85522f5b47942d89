// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// CheckLaws fails t where Q1, Q2 or F1 to F3 do not hold. TestModel_WaitingWorkers checks Q3.
func (q *Typed[T]) CheckLaws(t testing.TB) {
	t.Helper()
	q.mu.Lock()
	defer q.mu.Unlock()
	processing, ready := 0, 0
	for item, state := range q.items {
		require.True(t, state.dirty || state.processing, "Q2: %v is unknown", item)
		if state.processing {
			processing++
		} else {
			ready++
		}
	}
	queue, ok := q.queue.(*fifo[T])
	if !ok {
		return
	}
	queue.checkLaws(t)
	require.Equal(t, processing, q.processing, "Q2: their number")
	queued := map[T]bool{}
	for _, item := range queue.items() {
		require.True(t, q.items[item].dirty, "Q1: %v", item)
		require.False(t, q.items[item].processing, "Q1: %v", item)
		queued[item] = true
	}
	require.Len(t, queued, queue.Len(), "Q1: each once")
	require.Len(t, queued, ready, "Q1: all of them")
}

func (f *fifo[T]) checkLaws(t testing.TB) {
	t.Helper()
	var zero T
	size := len(f.ring)
	require.Zero(t, size&(size-1), "F3: %d slots", size)
	require.LessOrEqual(t, f.len, size, "F1")
	for n := f.len; n < size; n++ {
		require.Equal(t, zero, f.ring[f.slot(n)], "F2")
	}
}

// MostItems is what the map of items has room for, and Slots the size of the ring.
func (q *Typed[T]) MostItems() int { return q.mostItems }
func (q *Typed[T]) Slots() int     { return len(q.queue.(*fifo[T]).ring) }

// Slots is the size of the heap.
func (q *TypedDelayingQueue[T]) Slots() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return cap(q.heap)
}

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
	if len(q.heap) > 0 {
		require.NotNil(t, q.stop, "D2")
		require.False(t, q.firesAt > q.heap[0].due, "D2")
	}
	if q.stopped {
		require.Empty(t, q.heap, "D3")
		require.Nil(t, q.stop, "D3")
	}
	for _, w := range q.heap[:cap(q.heap)][len(q.heap):] {
		require.Nil(t, w, "a removed item stays reachable")
	}
}

// SetMaxRemembered changes how many items an exponential limiter remembers at most.
func SetMaxRemembered[T comparable](limiter TypedRateLimiter[T], maxLen int) {
	limiter.(*TypedItemExponentialFailureRateLimiter[T]).maxLen = maxLen
}

// Remembered is how long a limiter remembers at least.
const Remembered time.Duration = minRemembered
