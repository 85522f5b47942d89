// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// checkLaws checks D1 to D3, and the laws of progress.
func (f *DeltaFIFO) checkLaws(t testing.TB) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Len(t, f.items, len(f.queue), "D1: as many items as queued keys")
	for _, key := range f.queue {
		deltas, ok := f.items[key]
		require.True(t, ok, "D1: %q is queued and has no deltas", key)
		require.NotEmpty(t, deltas, "D2: %q", key)
		for j := 1; j < len(deltas); j++ {
			consecutive := deltas[j-1].Type == Deleted && deltas[j].Type == Deleted
			require.False(t, consecutive, "D3: %q", key)
		}
	}
	f.progress.checkLaws(t, len(f.queue))
}

// checkLaws checks O2 and O3, and the laws of progress.
func (f *RealFIFO) checkLaws(t testing.TB) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Equal(t, f.atomic, f.known.KeyListerGetter == nil)
	for _, it := range f.items {
		switch it.delta.Type {
		case Replaced, Sync:
			require.False(t, f.atomic, "O2: %s", it.delta.Type)
		case ReplacedAll, SyncAll, Bookmark:
			require.True(t, f.atomic, "O2: %s", it.delta.Type)
			continue
		}
		require.NotEmpty(t, it.key, "O3")
	}
	f.progress.checkLaws(t, len(f.items))
}

// checkLaws checks P1 to P4 when queueLen items are queued.
func (p *progress) checkLaws(t testing.TB, queueLen int) {
	t.Helper()
	inProcessing := p.added - p.processed - queueLen
	require.GreaterOrEqual(t, inProcessing, 0, "P1")
	require.Equal(t, p.begun && p.processed >= p.firstList, p.HasSynced(), "P2: %+v", *p)
	require.Equal(t, p.initial, !p.HasSynced(), "P2: %+v", *p)
	for i, m := range p.marks {
		require.Greater(t, m.items, p.processed, "P3")
		require.LessOrEqual(t, m.items, p.added, "P3")
		require.True(t, i == 0 || m.items > p.marks[i-1].items, "P3: %+v", p.marks)
	}
	if inProcessing == 0 {
		require.Nil(t, p.completes, "P4")
	}
}
