// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
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

// Each row of TestChaos must meet these targets.
//
//	T1  half of ours are current within targetMedian, and all within targetMost, also alone; or,
//	    on a busy machine, a second after the first of client-go's, and all seven seconds later
//	T2  ours send as few requests during a fault as client-go's, but for a scout's and Health's
//	T3  those of ours that the server refuses send as few requests as client-go's
//	T4  a fleet of ours spreads its requests as client-go's does
//
// As few means 5/4 as many, and two more tries of each informer, with two requests each: one before
// the fault ended, and one after it. A scout tries for all informers of a client every scoutEvery;
// Health asks for an informer every askEvery if the store is old although the watch is open.
const (
	targetMedian = 3 * time.Second
	targetMost   = 10 * time.Second

	scoutEvery = 2 * time.Second
	askEvery   = 10 * time.Second
)

// misses returns the targets that a row does not meet.
func (r row) misses() (missed []string) {
	miss := func(format string, args ...any) {
		missed = append(missed, r.fault+": "+fmt.Sprintf(format, args...))
	}
	our, their := r.results[ours], r.results[clientGo]
	first := slices.Min(their.took)
	for _, implementation := range []string{alone, ours} {
		result, ok := r.results[implementation]
		if !ok {
			continue
		}
		if m := median(result.took); m > max(targetMedian, first+time.Second) {
			miss("T1: %s, median %.1f s", implementation, m.Seconds())
		}
		if most := slices.Max(result.took); most > max(targetMost, first+8*time.Second) {
			miss("T1: %s, maximum %.1f s", implementation, most.Seconds())
		}
	}
	asFew := func(their, informers int) int { return their*5/4 + 4*informers }
	extra := 2 * r.programs * int(r.lasted/scoutEvery)
	if r.asks {
		extra += r.size * int(r.lasted/askEvery)
	}
	if our.during > asFew(their.during, r.size)+extra {
		miss("T2: %d requests, client-go %d", our.during, their.during)
	}
	if r.refused > 0 && our.sick > asFew(their.sick, r.refused) {
		miss("T3: %d requests of refused informers, client-go %d", our.sick, their.sick)
	}
	if our.peak > their.peak*5/4 {
		miss("T4: a peak of %.1f times the mean, client-go %.1f", our.peak, their.peak)
	}
	return missed
}

// Each target that a row misses is found.
func TestTargets(t *testing.T) {
	seconds := func(each ...float64) (took []time.Duration) {
		for _, s := range each {
			took = append(took, time.Duration(s*float64(time.Second)))
		}
		return took
	}
	good := result{took: seconds(1, 2.9, 10), during: 141, after: 5, sick: 133, peak: 25}
	their := result{took: seconds(1, 30, 60), during: 100, after: 5, sick: 100, peak: 20}
	busy := their
	busy.took = seconds(9, 30, 60)
	rowOf := func(change func(our, lone *result)) row {
		our, lone := good, good
		change(&our, &lone)
		return row{fault: "x", lasted: 5 * time.Second, size: 3, programs: 1, refused: 2,
			results: map[string]result{clientGo: their, ours: our, alone: lone}}
	}
	for _, test := range []struct {
		change func(our, lone *result)
		want   []string
	}{
		{func(_, _ *result) {}, nil},
		{func(our, _ *result) { our.took = seconds(1, 3.1, 4) },
			[]string{"x: T1: ours, median 3.1 s"}},
		{func(our, _ *result) { our.took = seconds(1, 2, 10.1) },
			[]string{"x: T1: ours, maximum 10.1 s"}},
		{func(_, lone *result) { lone.took = seconds(1, 4, 12) },
			[]string{"x: T1: " + alone + ", median 4.0 s", "x: T1: " + alone + ", maximum 12.0 s"}},
		{func(our, _ *result) { our.during = 142 },
			[]string{"x: T2: 142 requests, client-go 100"}},
		{func(our, _ *result) { our.sick = 134 },
			[]string{"x: T3: 134 requests of refused informers, client-go 100"}},
		{func(our, _ *result) { our.peak = 25.1 },
			[]string{"x: T4: a peak of 25.1 times the mean, client-go 20.0"}},
	} {
		assert.Equal(t, test.want, rowOf(test.change).misses())
	}
	asks := rowOf(func(our, _ *result) { our.during = 151 })
	asks.asks, asks.lasted = true, 10*time.Second
	assert.Equal(t, []string{"x: T2: 151 requests, client-go 100"}, asks.misses())
	asks.size, asks.lasted = 4, 20*time.Second
	assert.Empty(t, asks.misses())
	slow := rowOf(func(our, lone *result) {
		our.took, lone.took = seconds(9, 9.9, 16.9), seconds(9, 10.1, 17.1)
	})
	slow.results[clientGo] = busy
	assert.Equal(t, []string{"x: T1: " + alone + ", median 10.1 s",
		"x: T1: " + alone + ", maximum 17.1 s"}, slow.misses())
}

// The peak is that of any hundred milliseconds, wherever they begin.
func TestPeak(t *testing.T) {
	at := func(milliseconds ...int) (times []time.Time) {
		for _, ms := range milliseconds {
			times = append(times, time.Unix(0, 0).Add(time.Duration(ms)*time.Millisecond))
		}
		return times
	}
	assert.Zero(t, peak(nil, time.Second))
	assert.InDelta(t, 10, peak(at(999), time.Second), 1e-9)
	assert.InDelta(t, 1, peak(at(950, 850, 750, 650, 550, 450, 350, 250, 150, 50), time.Second),
		1e-9)
	assert.InDelta(t, 5, peak(at(0, 100, 190, 199, 300, 400), time.Second), 1e-9)
}
