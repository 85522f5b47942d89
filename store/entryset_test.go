// SPDX-License-Identifier: Apache-2.0

package store

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// checkEntrySet checks that a set is an entry or a map, and returns its members.
func checkEntrySet(t testing.TB, s *entrySet) map[*entry]bool {
	t.Helper()
	got := map[*entry]bool{}
	for e := range s.each {
		require.NotNil(t, e)
		require.False(t, got[e], "a member twice")
		got[e] = true
	}
	require.Len(t, got, s.len())
	require.True(t, s.one == nil || s.all == nil, "an entry or a map")
	return got
}

// Random inserts and removes leave an entrySet and a map with the same members.
func TestEntrySetIsASet(t *testing.T) {
	entries := make([]*entry, 8)
	for i := range entries {
		entries[i] = &entry{}
	}
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 0))
		var s entrySet
		model := map[*entry]bool{}
		two := false // there were two members once
		for range 200 {
			e := entries[random.IntN(len(entries))]
			if random.IntN(2) == 0 {
				s.insert(e)
				model[e] = true
			} else {
				s.remove(e)
				delete(model, e)
			}
			require.Equal(t, model, checkEntrySet(t, &s), "seed %d", seed)
			two = two || len(model) == 2
			require.Equal(t, two, s.all != nil, "seed %d: a map of one", seed)
		}
		for e := range maps.Clone(model) {
			s.remove(e)
		}
		require.Zero(t, s.len())
	}
}

// The iteration can be left early.
func TestEntrySetEachStops(t *testing.T) {
	for _, size := range []int{1, 2, 20} {
		var s entrySet
		for range size {
			s.insert(&entry{})
		}
		count := 0
		for range s.each {
			count++
			break
		}
		require.Equal(t, 1, count)
	}
}
