// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// report is the result of a run.
type report struct {
	violations []violation
	notes      []note
	coverage   map[string]int
	histories  []*history
	requests   int             // lists and watches of all processes
	recoveries []time.Duration // from the end of all faults until a store is current
	contest    contestReport
}

// violation is an invariant that does not hold.
type violation struct {
	invariant int
	text      string
}

func (v violation) String() string { return fmt.Sprintf("invariant %d: %s", v.invariant, v.text) }

type note struct {
	at   time.Duration
	text string
}

// story returns the notes. Those of one instant are sorted by their subject, because goroutines
// that run at the same instant have no order.
func (r report) story() string {
	subject := func(n note) string { return n.text[:strings.IndexAny(n.text+" ", ": ")] }
	slices.SortStableFunc(r.notes, func(a, b note) int {
		if a.at != b.at {
			return cmp.Compare(a.at, b.at)
		}
		return cmp.Compare(subject(a), subject(b))
	})
	var lines strings.Builder
	for _, n := range r.notes {
		fmt.Fprintf(&lines, "%10.3fs %s\n", n.at.Seconds(), n.text)
	}
	return lines.String()
}

// end returns the last lines of the story before the first violation, and the violation.
func (r report) end(lines int) string {
	all := strings.SplitAfter(r.story(), "\n")
	last := slices.IndexFunc(all, func(l string) bool { return strings.Contains(l, " VIOLATION ") })
	return strings.Join(all[max(0, last+1-lines):last+1], "")
}

func (w *world) violate(invariant int, format string, args ...any) {
	v := violation{invariant, fmt.Sprintf(format, args...)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isKnownLocked(v) {
		return
	}
	w.report.notes = append(w.report.notes, note{time.Since(w.begun), "VIOLATION " + v.String()})
	w.report.violations = append(w.report.violations, v)
}

func (w *world) violated() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.report.violations) > 0
}

func (w *world) note(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.notes = append(w.report.notes, note{time.Since(w.begun), fmt.Sprintf(format, args...)})
}

// cover counts that something happened.
func (w *world) cover(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.report.coverage[what]++
}
