// SPDX-License-Identifier: Apache-2.0

// Package recovery runs faults against long-running informers, ours and client-go's side by side,
// on a real API server. It checks that they lose nothing and that Health is right, and measures how
// soon each is current again.
//
//	writer -> API server -> link -> informer -> history, monitor
//
// Read recovery_test.go and chaos_test.go, fault_test.go and chaosfault_test.go (the faults),
// world_test.go (one sequence of them), writer_test.go (the server's known state), monitor_test.go
// (what must hold at each moment), history_test.go (what must hold for handlers), link_test.go (the
// network).
package recovery

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Our mean recovery time may be longer than client-go's by faultTolerance after one fault, and the
// sum over all faults by sumTolerance. This covers the random part of the waits of both, four times
// the standard deviation. After 40 s of failures the next attempt is due within 0 to 60 s, with a
// deviation of 14 s, after 20 s of them 7 s; the difference of two means of 24 has 0.29 of that.
const (
	faultTolerance = 16 * time.Second
	sumTolerance   = 19 * time.Second
)

// few are informers with a client each. Their waits are random: the mean of several is compared.
var few = setup{
	kind:            configMap,
	implementations: []string{oursDeltaFIFO, oursRealFIFO, clientGo},
	namespaces:      1,
	informers:       24,
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
	for _, ours := range few.implementations[:2] {
		assert.LessOrEqual(t, rows.sum(ours), rows.sum(clientGo)+sumTolerance, ours)
		for _, r := range rows.rows {
			assert.LessOrEqual(t, mean(r.results[ours].took),
				mean(r.results[clientGo].took)+faultTolerance, "%s: %s", ours, r.fault)
		}
	}
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
