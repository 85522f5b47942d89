// SPDX-License-Identifier: Apache-2.0

// Package recovery lets faults hit long-running informers, ours and client-go's side by side, on a
// real API server, and compares what they lose (nothing), what they say of themselves, and how long
// they need to be current again.
//
//	writer -> API server -> link -> informer -> history, monitor
//
// Read recovery_test.go, fault_test.go (what goes wrong), world_test.go (one sequence of faults),
// writer_test.go (what is true), monitor_test.go (what is required at each moment), history_test.go
// (what is required of handlers), link_test.go (the network).
package recovery

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// tolerance is how much longer than client-go's the sum of our mean recoveries may be. It covers
// the random part of the waits of both.
const tolerance = 10 * time.Second

// Every fault hits informers that have run for long and have met other faults before. Nothing is
// lost, Health is right at every moment, and we are current again as soon as client-go.
func TestRecovery(t *testing.T) {
	var mu sync.Mutex
	var rows table
	t.Run("sequence", func(t *testing.T) {
		for name, faults := range sequences {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				endured := newWorld(t).endure(faults)
				mu.Lock()
				defer mu.Unlock()
				rows = append(rows, endured...)
			})
		}
	})
	t.Log(rows)
	for _, ours := range []string{oursDeltaFIFO, oursRealFIFO} {
		assert.LessOrEqual(t, rows.sum(ours), rows.sum(clientGo)+tolerance, ours)
	}
}

// row is how long the informers needed for one fault.
type row struct {
	fault string
	took  map[string][]time.Duration // by implementation
}

// String is a row of a Markdown table: for each implementation the mean, and the shortest and the
// longest.
func (r row) String() string {
	cells := []string{r.fault}
	for _, implementation := range implementations {
		took := r.took[implementation]
		least, most := took[0], took[0]
		for _, d := range took {
			least, most = min(least, d), max(most, d)
		}
		cells = append(cells, fmt.Sprintf("%.1f (%.1f to %.1f)",
			mean(took).Seconds(), least.Seconds(), most.Seconds()))
	}
	return line(cells)
}

func mean(durations []time.Duration) time.Duration {
	var sum time.Duration
	for _, d := range durations {
		sum += d
	}
	return sum / time.Duration(len(durations))
}

func line(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" }

// table is all rows, in seconds.
type table []row

// sum returns the sum of an implementation's means.
func (rows table) sum(implementation string) time.Duration {
	var sum time.Duration
	for _, r := range rows {
		sum += mean(r.took[implementation])
	}
	return sum
}

// String is the table with its head and its sums, in Markdown.
func (rows table) String() string {
	head := append([]string{"seconds until current, mean (range)"}, implementations...)
	lines := []string{"", line(head), "|" + strings.Repeat("---|", len(head))}
	for _, r := range rows {
		lines = append(lines, r.String())
	}
	sums := []string{"sum of the means"}
	for _, implementation := range implementations {
		sums = append(sums, fmt.Sprintf("%.1f", rows.sum(implementation).Seconds()))
	}
	return strings.Join(append(lines, line(sums)), "\n")
}
