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
	fault           string
	implementations []string
	results         map[string]result // by implementation
}

// result is how the informers of one implementation recovered from one fault.
type result struct {
	took          []time.Duration // of each informer
	during, after int             // requests during the fault, and then until the recovery
}

// String is a row of a Markdown table.
func (r row) String() string {
	cells := []string{r.fault}
	for _, implementation := range r.implementations {
		cells = append(cells, r.results[implementation].String())
	}
	return line(cells)
}

func (r result) String() string {
	return fmt.Sprintf("%.1f (%.1f) · %d + %d", median(r.took).Seconds(),
		slices.Max(r.took).Seconds(), r.during, r.after)
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
	if len(t.rows) == 0 {
		return "no rows"
	}
	head := append([]string{"seconds until current: median (maximum) · requests during + after"},
		t.rows[0].implementations...)
	lines := []string{"", line(head), "|" + strings.Repeat("---|", len(head))}
	for _, r := range t.rows {
		lines = append(lines, r.String())
	}
	return strings.Join(lines, "\n")
}
