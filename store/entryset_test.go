// SPDX-License-Identifier: Apache-2.0

package store

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// checkEntrySet checks that a set uses the form of its size, and returns its members.
func checkEntrySet(t *testing.T, s *entrySet) map[*entry]bool {
	t.Helper()
	got := map[*entry]bool{}
	for e := range s.all {
		require.NotNil(t, e)
		require.False(t, got[e], "a member twice")
		got[e] = true
	}
	require.Len(t, got, s.len())
	require.Equal(t, len(got) > 1, s.more != nil, "a set of one has no list")
	if s.more != nil {
		require.Nil(t, s.one)
		require.True(t, s.more.table == nil || s.more.list == nil, "a list or a map")
		require.LessOrEqual(t, len(s.more.list), listMax)
		require.True(t, s.more.table == nil || s.len() > listMax/2)
	}
	return got
}

// Random inserts and removes leave an entrySet and a map with the same members, in all sizes.
func TestEntrySetIsASet(t *testing.T) {
	entries := make([]*entry, 2*listMax)
	for i := range entries {
		entries[i] = &entry{}
	}
	for seed := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, 0))
		var s entrySet
		model := map[*entry]bool{}
		smallest, largest := len(entries), 0
		for step := range 20_000 {
			some := entries[:4]
			if step > 1000 {
				some = entries
			}
			e := some[random.IntN(len(some))]
			if growing := step/5000%2 == 0; growing == (random.IntN(8) > 0) {
				s.insert(e)
				model[e] = true
			} else {
				s.remove(e)
				delete(model, e)
			}
			require.Equal(t, len(model), s.len())
			if step%200 == 0 || step < 1000 {
				require.Equal(t, model, checkEntrySet(t, &s), "seed %d, step %d", seed, step)
			}
			if step > 1000 {
				smallest, largest = min(smallest, s.len()), max(largest, s.len())
			}
		}
		require.Less(t, smallest, listMax/2, "the test reaches every form")
		require.Greater(t, largest, listMax)
		for e := range maps.Clone(model) {
			s.remove(e)
		}
		require.Equal(t, entrySet{}, s)
	}
}

// The iteration can be left early.
func TestEntrySetAllStops(t *testing.T) {
	for _, size := range []int{1, 2, listMax, 2 * listMax} {
		var s entrySet
		for range size {
			s.insert(&entry{})
		}
		count := 0
		for range s.all {
			count++
			break
		}
		require.Equal(t, 1, count)
	}
}
