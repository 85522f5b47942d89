// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// An itemMap does what a map[int]*waitingItem[int] does, even if most items have the same hash.
func TestItemMap_IsAMap(t *testing.T) {
	for _, hashes := range []uint64{1, 4, 1 << 32} {
		random := rand.New(rand.NewPCG(hashes, 0))
		m, model := newItemMap[int](), map[int]*waitingItem[int]{}
		m.hash = func(item int) uint64 { return uint64(item) % hashes }
		for range 10_000 {
			item := random.IntN(20)
			want, has := model[item]
			require.Same(t, want, m.get(item))
			switch {
			case random.IntN(2) == 0:
				w, found := m.getOrAdd(item)
				require.Equal(t, has, found)
				require.Equal(t, item, w.item)
				if found {
					require.Same(t, want, w)
				}
				model[item] = w
			case has:
				m.remove(want)
				delete(model, item)
			}
			m.checkLaws(t)
			require.Len(t, model, m.len)
		}
	}
}

func (m *itemMap[T]) checkLaws(t testing.TB) {
	t.Helper()
	items := 0
	for hash, w := range m.lists {
		require.NotNil(t, w, "M2")
		for ; w != nil; w = w.next {
			items++
			require.Equal(t, hash, w.hash, "M1")
			for other := w.next; other != nil; other = other.next {
				require.NotEqual(t, w.item, other.item, "M2")
			}
		}
	}
	require.Equal(t, m.len, items, "M1")
}
