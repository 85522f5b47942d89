// SPDX-License-Identifier: Apache-2.0

package boundedmap

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A Map is a built-in map with the times of the last Puts. A key that is put again and again is not
// stale, whatever its value says.
func TestModel(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			const maxLen = 4
			m, model, put := New[int, int](maxLen), map[int]int{}, map[int]time.Time{}
			for i := range 2000 {
				time.Sleep(time.Duration(random.Int64N(int64(StaleAfter / 3))))
				key := random.IntN(2 << (seed % 4))
				if random.IntN(5) == 0 {
					m.Delete(key)
					delete(model, key)
				} else {
					m.Put(key, i)
					if _, known := model[key]; !known && len(model) == maxLen {
						oldest := key
						put[key] = time.Now()
						for other := range model {
							if put[other].Before(put[oldest]) {
								oldest = other
							}
						}
						if time.Since(put[oldest]) >= StaleAfter {
							delete(model, oldest)
						}
					}
					if _, known := model[key]; known || len(model) < maxLen {
						model[key], put[key] = i, time.Now()
					}
				}
				require.Equal(t, len(model), m.Len())
				for key := range 16 {
					got, ok := m.Get(key)
					want, known := model[key]
					require.Equal(t, known, ok)
					require.Equal(t, want, got)
				}
			}
		})
	}
	require.Panics(t, func() { New[int, int](0) })
}
