// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// checkLaws checks D1 to D3, and the laws of first.
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
	f.first.checkLaws(t, len(f.queue))
}

// checkLaws checks O2 and O3, and the laws of first.
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
	f.first.checkLaws(t, len(f.items))
}

// checkLaws checks P1 and P2 when queueLen items are queued.
func (f *first) checkLaws(t testing.TB, queueLen int) {
	t.Helper()
	require.GreaterOrEqual(t, f.queued-f.processed-queueLen, 0, "P1")
	require.Equal(t, f.begun && f.processed >= f.firstList, f.HasSynced(), "P2: %+v", *f)
	require.Equal(t, f.initial, !f.HasSynced(), "P2: %+v", *f)
}
