// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// checkLaws checks D1 to D3, and P1.
func (f *DeltaFIFO) checkLaws(t testing.TB) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Len(t, f.items, len(f.queue), "D1: as many items as queued keys")
	for _, e := range f.queue {
		deltas, ok := f.items[e.key]
		require.True(t, ok, "D1: %q is queued and has no deltas", e.key)
		require.NotEmpty(t, deltas, "D2: %q", e.key)
		for j := 1; j < len(deltas); j++ {
			consecutive := deltas[j-1].Type == Deleted && deltas[j].Type == Deleted
			require.False(t, consecutive, "D3: %q", e.key)
		}
	}
	f.progress.checkLaws(t, len(f.queue))
}

// checkLaws checks O2 and O3, and P1.
func (f *RealFIFO) checkLaws(t testing.TB) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	require.Equal(t, f.atomic, f.known == nil)
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

func (p *progress) checkLaws(t testing.TB, queueLen int) {
	t.Helper()
	require.LessOrEqual(t, p.firstQueued, queueLen, "P1")
	synced := p.begun && p.firstQueued == 0 && p.firstProcessing == 0
	require.Equal(t, synced, p.isSynced(), "P1: %+v", *p)
	if !p.processing {
		require.Nil(t, p.late, "P3")
		require.Nil(t, p.completes, "P3")
	}
}
