// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"maps"
	"slices"
	"testing"
	"time"
)

// totals sums up what pairs of runs have shown.
type totals struct {
	coverage
	requests   [2]int // of runs without a storm: ours, client-go
	recoveries [2][]time.Duration
}

func (a *totals) add(p pair) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range knownDifferences {
		if p.theirs.coverage["known "+d.name] > 0 {
			a.counts[d.name]++
		}
	}
	stormy := p.theirs.coverage["known closed-stream"]+p.theirs.coverage["known expired-stream"] > 0
	for i, r := range []report{p.ours, p.theirs} {
		if !stormy {
			a.requests[i] += r.requests
		}
		a.recoveries[i] = append(a.recoveries[i], r.recoveries...)
	}
}

func (a *totals) check(t *testing.T) {
	for _, what := range slices.Sorted(maps.Keys(a.counts)) {
		t.Logf("%8d %s", a.counts[what], what)
	}
	for i, impl := range []string{"ours", clientGo} {
		all := a.recoveries[i]
		slices.Sort(all)
		t.Logf("%s: %d requests, %d recoveries, median %v, p90 %v, longest %v", impl,
			a.requests[i], len(all), all[len(all)/2], all[len(all)*9/10], all[len(all)-1])
	}
}
