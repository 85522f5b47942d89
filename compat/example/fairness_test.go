// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/workqueue"
)

// plotted has what the picture shows.
const plotted = "../../docs/pictures/fairness.txt"

var update = flag.Bool("update", false, "write "+plotted)

// One of 1,000 tenants adds a flood of keys. In a minute, the others add four keys each, which are
// a twelfth of what the 8 workers can do. In a Fair, the flood at most doubles the time until
// these keys are reconciled: each times for one worker. In queues that are first in, first out, the
// time grows with the flood. The plot docs/pictures/fairness.svg shows it.
func TestFairness_OneTenantFloods(t *testing.T) {
	floods := []int{1, 100, 1000, 10_000, 100_000}
	var rows strings.Builder
	for _, impl := range tenantQueues {
		if impl.name == "client-go" {
			continue // ours is the same order
		}
		times := map[int]time.Duration{}
		for _, flood := range floods {
			times[flood] = timeOfOthers(t, impl.make, flood)
			fmt.Fprintf(&rows, "%s %d %d\n", impl.name, flood, times[flood].Microseconds())
		}
		if impl.name == "fair" {
			assert.LessOrEqual(t, times[100_000], 2*times[1])
		} else {
			assert.Greater(t, times[100_000], 30*time.Second)
		}
	}
	if *update {
		require.NoError(t, os.WriteFile(plotted, []byte(rows.String()), 0o644))
	}
	committed, err := os.ReadFile(plotted)
	require.NoError(t, err)
	assert.Equal(t, string(committed), rows.String(), "run go test -run TestFairness -update")
}

// timeOfOthers returns the time within which 99 of 100 keys of the tenants that do not flood are
// reconciled.
func timeOfOthers(
	t *testing.T, newQueue func() workqueue.TypedInterface[string], flood int,
) (p99 time.Duration) {
	const work = 10 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		q := newQueue()
		var mu sync.Mutex
		added, times := map[string]time.Time{}, []time.Duration(nil)
		for range 8 {
			go func() {
				for key, shutdown := q.Get(); !shutdown; key, shutdown = q.Get() {
					time.Sleep(work)
					mu.Lock()
					if at, other := added[key]; other {
						times = append(times, time.Since(at))
					}
					mu.Unlock()
					q.Done(key)
				}
			}()
		}
		for i := range flood {
			q.Add("tenant-0/" + strconv.Itoa(i))
		}
		random := rand.New(rand.NewPCG(1, 1))
		const others, each = 999, 4
		for i := range others * each {
			time.Sleep(time.Minute / (others * each))
			key := fmt.Sprintf("tenant-%d/%d", 1+random.IntN(others), i)
			mu.Lock()
			added[key] = time.Now()
			mu.Unlock()
			q.Add(key)
		}
		for q.Len() > 0 {
			time.Sleep(time.Second)
		}
		time.Sleep(time.Second)
		q.ShutDown()
		synctest.Wait()
		require.Equal(t, others*each, len(times))
		slices.Sort(times)
		p99 = times[len(times)*99/100]
	})
	return p99
}
