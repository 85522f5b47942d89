// SPDX-License-Identifier: Apache-2.0

// Package recovery runs faults against long-running informers, ours and client-go's side by side,
// on a real API server. It checks that they lose nothing and that Health is right, and measures how
// soon each is current again.
//
//	writer -> API server -> link -> informer -> history, monitor
//
// Read recovery_test.go and chaos_test.go, fault_test.go and chaosfault_test.go (the faults),
// neighbour_test.go (worlds with sick, many and slow ones), table_test.go (the results, and what
// ours must meet), world_test.go (one sequence of faults), writer_test.go (the server's known
// state), monitor_test.go (what must hold at each moment), history_test.go (what must hold for
// handlers), and link.go of package cluster (the network).
package recovery

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// few are informers with a client each. Half of ours have a DeltaFIFO, half a RealFIFO.
var few = setup{
	kind:            configMap,
	implementations: []string{ours, clientGo},
	namespaces:      1,
	informers:       36,
	perClient:       1,
	objects:         30,
	beatEvery:       200 * time.Millisecond,
	tolerance:       5 * time.Second, // a busy machine delivers a backlog with pauses
}

// Informers meet one fault after another. They lose nothing, Health is right at every moment, and
// ours are current again as soon as client-go's.
func TestRecovery(t *testing.T) {
	var rows table
	t.Run("sequence", func(t *testing.T) {
		for name, faults := range sequences {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				rows.add(newWorld(t, few).endure(faults))
			})
		}
	})
	t.Log(rows.String())
	for _, r := range rows.rows {
		late, bound := lateness(r.results[ours].took, r.results[clientGo].took)
		assert.LessOrEqual(t, late, bound, r.fault)
		t.Logf("%+.1f s, bound %.1f s: %s", late, bound, r.fault)
	}
}

// lateness returns how much later the mean of ours is, in seconds, and a bound for that: four
// standard deviations, as the samples show them, and recoveredLag.
//
// Both implementations wait for 0.8 s, doubled each time to 30 s, times a random factor between 1
// and 2. When the server answers again, the rest of the present wait is distributed nearly evenly
// from 0 to its length: to 25 s after 20 s of failures, with a standard deviation of 7 s, and to 50
// s after 40 s, with one of 15 s, or more if some fail once again. That of the difference of two
// means of 36 is less by sqrt(36/2): 1.7 s and 3.5 s. Chance makes the difference four times as
// large in one case of 30,000. There is no bound for the sum over all faults: its deviation would
// be that of the longest waits.
func lateness(our, their []time.Duration) (late, bound float64) {
	ourMean, ourVariance := meanAndVariance(our)
	theirMean, theirVariance := meanAndVariance(their)
	deviation := math.Sqrt(ourVariance + theirVariance)
	return ourMean - theirMean, 4*deviation + recoveredLag.Seconds()
}

// meanAndVariance returns the mean of durations, in seconds, and the variance of that mean.
func meanAndVariance(durations []time.Duration) (mean, variance float64) {
	n := float64(len(durations))
	for _, d := range durations {
		mean += d.Seconds() / n
	}
	for _, d := range durations {
		variance += (d.Seconds() - mean) * (d.Seconds() - mean) / (n - 1) / n
	}
	return mean, variance
}

// A client notices a dead connection after 45 s. With shorter times it does so sooner.
func TestRecovery_DeadConnectionsAreNoticedSooner(t *testing.T) {
	t.Setenv("HTTP2_READ_IDLE_TIMEOUT_SECONDS", "4")
	t.Setenv("HTTP2_PING_TIMEOUT_SECONDS", "2")
	for _, r := range newWorld(t, few).endure([]fault{
		{name: "connections lost, new ones work", strike: loseFor(0)},
	}) {
		for implementation, result := range r.results {
			assert.Less(t, slices.Max(result.took), 40*time.Second, implementation)
		}
	}
}
