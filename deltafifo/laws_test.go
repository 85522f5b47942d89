// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// checkLaws checks D1 to D4, F1, F2 and the ring's.
func (f *DeltaFIFO) checkLaws(t testing.TB) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Len(t, f.index, f.queue.len(), "D1: as many keys as entries")
	for i := range f.queue.len() {
		e := f.queue.at(i)
		number, ok := f.index[e.key]
		require.True(t, ok, "D1: %q is queued and not indexed", e.key)
		require.Equal(t, f.popped+uint64(i), number, "D1: %q", e.key)
		require.NotEmpty(t, e.deltas, "D2: %q", e.key)
		for j := 1; j < len(e.deltas); j++ {
			require.False(t, e.deltas[j-1].Type == Deleted && e.deltas[j].Type == Deleted, "D3: %q", e.key)
		}
	}
	require.LessOrEqual(t, f.first.queued, f.queue.len(), "D4")
	f.first.checkLaws(t)
	f.barriers.checkLaws(t)
	checkRing(t, &f.queue, func(e entry) bool { return e.key == "" && e.deltas == nil })
}

// checkLaws checks O2 to O4, F1, F2 and the ring's.
func (f *RealFIFO) checkLaws(t testing.TB) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Equal(t, f.atomic, f.knownObjects == nil)
	for i := range f.items.len() {
		it := f.items.at(i)
		switch it.delta.Type {
		case Replaced, Sync:
			require.False(t, f.atomic, "O2: %s", it.delta.Type)
		case ReplacedAll, SyncAll, Bookmark:
			require.True(t, f.atomic, "O2: %s", it.delta.Type)
			continue
		}
		require.NotEmpty(t, it.key, "O3")
	}
	require.LessOrEqual(t, f.first.queued, f.items.len(), "O4")
	require.Empty(t, f.seen)
	f.first.checkLaws(t)
	f.barriers.checkLaws(t)
	checkRing(t, &f.items, func(it item) bool { return it == item{} })
}

func (l *firstList) checkLaws(t testing.TB) {
	t.Helper()
	require.Equal(t, l.begun && l.queued == 0 && l.processing == 0, l.isDone(), "F1: %+v", *l)
	require.GreaterOrEqual(t, l.queued, 0)
	require.GreaterOrEqual(t, l.processing, 0)
}

func checkRing[T any](t testing.TB, r *ring[T], isZero func(T) bool) {
	t.Helper()
	require.Zero(t, len(r.buf)&(len(r.buf)-1), "R3")
	for i := r.n; i < len(r.buf); i++ {
		if !isZero(*r.at(i)) {
			t.Fatalf("R2: slot %d of %d is not zero", i, r.n)
		}
	}
}

func (b *barriers) checkLaws(t testing.TB) {
	t.Helper()
	require.LessOrEqual(t, b.processed, b.popped, "B1")
	last := b.processed + 1
	for _, w := range b.waiting {
		require.GreaterOrEqual(t, w.target, last, "B2, B3")
		last = w.target
	}
}
