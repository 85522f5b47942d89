// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// checkLaws checks D1 to D3, and the laws of counter and fifo.
func (f *DeltaFIFO) checkLaws(t testing.TB) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Len(t, f.numbers, len(f.queue.items()), "D1: as many numbers as queued keys")
	for i, e := range f.queue.items() {
		number, ok := f.numbers[e.key]
		require.True(t, ok, "D1: %q is queued and has no number", e.key)
		require.Equal(t, f.counter.popped+uint64(i), number, "D1: %q", e.key)
		require.NotEmpty(t, e.deltas, "D2: %q", e.key)
		for j := 1; j < len(e.deltas); j++ {
			consecutive := e.deltas[j-1].Type == Deleted && e.deltas[j].Type == Deleted
			require.False(t, consecutive, "D3: %q", e.key)
		}
	}
	f.counter.checkLaws(t, len(f.queue.items()))
	f.queue.checkLaws(t, func(e entry) bool { return e.key == "" && e.deltas == nil })
}

// checkLaws checks O2 and O3, and the laws of counter and fifo.
func (f *RealFIFO) checkLaws(t testing.TB) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Equal(t, f.atomic, f.known == nil)
	for _, it := range f.items.items() {
		switch it.delta.Type {
		case Replaced, Sync:
			require.False(t, f.atomic, "O2: %s", it.delta.Type)
		case ReplacedAll, SyncAll, Bookmark:
			require.True(t, f.atomic, "O2: %s", it.delta.Type)
			continue
		}
		require.NotEmpty(t, it.key, "O3")
	}
	require.Empty(t, f.seen)
	f.counter.checkLaws(t, len(f.items.items()))
	f.items.checkLaws(t, func(it item) bool { return it == item{} })
}

func (c *counter) checkLaws(t testing.TB, queueLen int) {
	t.Helper()
	require.Equal(t, uint64(queueLen), c.queued-c.popped, "P1")
	require.True(t, slices.IsSorted(c.processing), "P2: %v", c.processing)
	require.Equal(t, c.begun && c.done() >= c.firstEnd, c.isSynced(), "P3: %+v", *c)
	last := c.done()
	for _, v := range c.versions.items() {
		require.Greater(t, v.end, last, "P4")
		last = v.end
	}
	require.LessOrEqual(t, last, max(c.done(), c.queued), "P4")
}

func (q *fifo[T]) checkLaws(t testing.TB, isZero func(T) bool) {
	t.Helper()
	require.LessOrEqual(t, q.head, len(q.slots), "F1")
	require.True(t, len(q.items()) > 0 || q.head == 0, "F1")
	for i, slot := range q.slots[:cap(q.slots)] {
		if i < q.head || i >= len(q.slots) {
			require.True(t, isZero(slot), "F2: slot %d of %d", i, cap(q.slots))
		}
	}
}
