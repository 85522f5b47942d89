// SPDX-License-Identifier: Apache-2.0

// Package recovery runs faults against long-running informers, ours and client-go's side by side,
// on a real API server. It checks that they lose nothing and that Health is right, and measures how
// soon each is current again.
//
//	writer -> API server -> link -> informer -> history, monitor
//
// Read recovery_test.go, fault_test.go (the faults), world_test.go (one sequence of them),
// writer_test.go (the server's known state), monitor_test.go (what must hold at each moment),
// history_test.go (what must hold for handlers), link_test.go (the network).
package recovery

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Our mean recovery time may be longer than client-go's by faultTolerance after one fault, and the
// sum over all faults by sumTolerance. This covers the random part of the waits of both: after 20 s
// of failures, the next attempt is due within 0 to 25 s.
const (
	faultTolerance = 15 * time.Second
	sumTolerance   = 10 * time.Second
)

// Informers meet one fault after another. They lose nothing, Health is right at every moment, and
// ours are current again as soon as client-go's.
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
		assert.LessOrEqual(t, rows.sum(ours), rows.sum(clientGo)+sumTolerance, ours)
		for _, r := range rows {
			assert.LessOrEqual(t, mean(r.took[ours]), mean(r.took[clientGo])+faultTolerance,
				"%s: %s", ours, r.fault)
		}
	}
}

// row is how long the informers took to recover from one fault.
type row struct {
	fault string
	took  map[string][]time.Duration // by implementation
}

// String is a row of a Markdown table: the mean of each implementation, and the range.
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

// table holds the rows of all faults.
type table []row

// sum returns the sum of an implementation's means.
func (rows table) sum(implementation string) time.Duration {
	var sum time.Duration
	for _, r := range rows {
		sum += mean(r.took[implementation])
	}
	return sum
}

// String is the table in Markdown, with the sums of the means.
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
