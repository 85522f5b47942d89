// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// row is how the informers recovered from one fault.
type row struct {
	fault    string
	lasted   time.Duration
	asks     bool
	size     int               // informers of each implementation that are not sick
	programs int               // clients of these
	refused  int               // informers that get 403 or 404 for good
	results  map[string]result // by implementation
}

// result is how the informers of one implementation recovered from one fault.
type result struct {
	took          []time.Duration // of each informer
	during, after int             // requests during the fault, and then until the recovery
	sick          int             // requests of sick informers since the recovery before
	peak          float64         // most requests of a fleet in 100 ms, divided by the mean
}

// columns are the implementations of the table.
var columns = []string{clientGo, alone, ours}

// String is a row of a Markdown table.
func (r row) String() string {
	cells := []string{r.fault}
	for _, implementation := range columns {
		cell := ""
		if result, ok := r.results[implementation]; ok {
			cell = result.String()
		}
		cells = append(cells, cell)
	}
	return line(cells)
}

func (r result) String() string {
	text := fmt.Sprintf("%.1f (%.1f) · %d + %d", median(r.took).Seconds(),
		slices.Max(r.took).Seconds(), r.during, r.after)
	if r.sick > 0 {
		text += fmt.Sprintf(" · sick %d", r.sick)
	}
	if r.peak > 0 {
		text += fmt.Sprintf(" · peak %.0f", r.peak)
	}
	return text
}

func median(durations []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(durations))[len(durations)/2]
}

func line(cells []string) string { return "| " + strings.Join(cells, " | ") + " |" }

// table holds the rows of all faults.
type table struct {
	mu   sync.Mutex
	rows []row
}

func (t *table) add(rows []row) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rows = append(t.rows, rows...)
}

// String is the table in Markdown.
func (t *table) String() string {
	head := append([]string{"seconds until current: median (maximum) · requests during + after"},
		columns...)
	lines := []string{"", line(head), "|" + strings.Repeat("---|", len(head))}
	for _, r := range t.rows {
		lines = append(lines, r.String())
	}
	return strings.Join(lines, "\n")
}
