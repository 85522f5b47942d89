// SPDX-License-Identifier: Apache-2.0

package store

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// A slotTable is a set: random inserts and deletes on it and on a map.
func TestSlotTableIsASet(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 0))
		table, model := newSlotTable(minCells), map[uint32]bool{}
		for step := range 3000 {
			n := random.Uint32N(400)
			if (step/500)%2 == 0 == (random.IntN(4) > 0) { // grows for 500 steps, shrinks for 500
				require.Equal(t, !model[n], table.insert(n))
				model[n] = true
			} else {
				require.Equal(t, model[n], table.delete(n))
				delete(model, n)
			}
			require.Equal(t, len(model), table.count)
			require.LessOrEqual(t, 4*table.count, 3*len(table.cells))
			if step%50 == 0 {
				for n := range uint32(400) {
					_, found := table.find(n)
					require.Equal(t, model[n], found, "seed %d step %d: %d", seed, step, n)
				}
			}
		}
	}
}

// A table that empties gives its memory back.
func TestSlotTableShrinks(t *testing.T) {
	table := newSlotTable(minCells)
	for n := range uint32(10_000) {
		table.insert(n)
	}
	require.LessOrEqual(t, len(table.cells), 1<<14)
	for n := range uint32(9_998) {
		table.delete(n)
	}
	require.LessOrEqual(t, len(table.cells), 16)
}

// One member costs no table, neither before the second one comes nor after it has gone.
func TestOneMemberCostsNoTable(t *testing.T) {
	x := &valueIndex{sets: map[string]slotSet{}}
	require.True(t, x.insert("v", 7))
	require.False(t, x.insert("v", 7))
	require.Nil(t, x.sets["v"].many)
	require.True(t, x.insert("v", 8))
	require.NotNil(t, x.sets["v"].many)
	require.False(t, x.delete("v", 9))
	require.True(t, x.delete("v", 7))
	require.Equal(t, slotSet{one: 8}, x.sets["v"])
	require.False(t, x.delete("v", 7))
	require.True(t, x.delete("v", 8))
	require.Empty(t, x.sets)
}

// The iteration may be left early.
func TestSlotSetAllStops(t *testing.T) {
	x := &valueIndex{sets: map[string]slotSet{}}
	for n := range uint32(5) {
		x.insert("v", n)
		count := 0
		for range x.sets["v"].all {
			count++
			break
		}
		require.Equal(t, 1, count)
	}
}
