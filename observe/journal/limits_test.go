// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// smallLimits lowers the limits of what is remembered until the test ends.
func smallLimits(t *testing.T) {
	keys, bytes := maxKeys, maxBytes
	t.Cleanup(func() { maxKeys, maxBytes = keys, bytes })
	maxKeys, maxBytes = 4, 100
}

// naivePair is an entry of a slice that does what a recent does, the last used first.
type naivePair struct {
	key   string
	value int
	bytes int
}

// Random puts, gets and visits of a recent have the results of a slice. Both of its limits are
// crossed all the time, and an entry that is larger than all of the room is kept.
func TestModel_RecentAgainstASlice(t *testing.T) {
	smallLimits(t)
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 0))
		r, naive := newRecent[string, int](), []naivePair(nil)
		take := func(key string) (p naivePair, exists bool) {
			i := slices.IndexFunc(naive, func(p naivePair) bool { return p.key == key })
			if i < 0 {
				return p, false
			}
			p = naive[i]
			naive = slices.Delete(naive, i, i+1)
			return p, true
		}
		for step := range 200 {
			key := fmt.Sprint(random.IntN(8))
			if random.IntN(3) == 0 {
				want, known := take(key)
				if known {
					naive = slices.Insert(naive, 0, want)
				}
				got := r.get(key)
				require.Equal(t, known, got != nil, "seed %d", seed)
				if known {
					require.Equal(t, want.value, got.value, "seed %d", seed)
				}
				continue
			}
			size := random.IntN(60)
			if random.IntN(10) == 0 {
				size = 2 * maxBytes
			}
			take(key)
			naive = slices.Insert(naive, 0, naivePair{key, step, size})
			sum := func() (n int) {
				for _, p := range naive {
					n += p.bytes
				}
				return n
			}
			for len(naive) > 1 && (len(naive) > maxKeys || sum() > maxBytes) {
				naive = naive[:len(naive)-1]
			}
			r.put(key, step, size)
			var all []naivePair
			r.all(func(key string, value *int) {
				all = append(all, naivePair{key, *value, r.entries[key].bytes})
			})
			require.Equal(t, naive, all, "seed %d", seed)
			require.Len(t, r.entries, len(naive))
			require.Equal(t, sum(), r.bytes, "seed %d", seed)
		}
	}
}

// The median is that of the last reconciles, however many there were before.
func TestQueueFacts_MedianOfTheLastReconciles(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 0))
	var f queueFacts
	var all []time.Duration
	for range 4 * maxDurations {
		d := time.Duration(random.IntN(1000)) + time.Duration(len(all)) // they become longer
		all = append(all, d)
		f.note(&Reconcile{Result: Forgotten, Duration: d}, 0)
		sorted := slices.Sorted(slices.Values(all[max(0, len(all)-maxDurations):]))
		got := f.facts("queue", 0)
		require.Equal(t, sorted[len(sorted)/2], got.Median, "after %d", len(all))
		require.Equal(t, len(all), got.Reconciles)
		require.Equal(t, map[Result]int{Forgotten: len(all)}, got.Results)
	}
}

// The last ones of many reconciles are remembered, and the first ones and the last of many keys
// that one call adds.
func TestJournal_RemembersTheFirstAndTheLast(t *testing.T) {
	for n := range 3*maxLast + 2 {
		var items, want []int
		for i := range n {
			items = withLast(items, i)
			want = append(want, i)
		}
		require.Equal(t, want[max(0, n-maxLast):], items)
		require.LessOrEqual(t, cap(items), maxLast)
	}
	w := newRecorded(t)
	var want []string
	w.handle = func(string) {
		for i := range 3 * maxCauses {
			want = append(want, fmt.Sprintf("work key-%d", i))
			w.queue.Add(fmt.Sprint("key-", i))
		}
	}
	w.handler.OnAdd(settings("1"), false)
	calls, _ := w.journal.About("default/settings")
	require.Len(t, calls, 1)
	want = append(want[:maxCauses-1], want[len(want)-1])
	require.Equal(t, want, calls[0].Added)
}
