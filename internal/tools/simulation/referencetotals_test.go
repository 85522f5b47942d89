// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"testing"
	"time"
)

// moreRequests is how many times as many requests as client-go ours may send: it waits less after a
// fault, because its backoff starts again after a 410.
const moreRequests = 1.25

// totals sums up what pairs of runs have shown.
type totals struct {
	coverage                      // of our runs
	known      map[string]int     // runs of client-go with each known difference
	requests   [2]int             // of ours and of client-go, without scripts with a storm
	recoveries [2][]time.Duration // that took time
	contests   [2]contestReport
}

func (a *totals) add(p pair) {
	a.coverage.add(p.ours.coverage)
	a.mu.Lock()
	defer a.mu.Unlock()
	stormy := false
	for _, d := range knownDifferences {
		if p.theirs.coverage["known "+d.name] > 0 {
			a.known[d.name]++
			stormy = stormy || d.storm
		}
	}
	for i, r := range []report{p.ours, p.theirs} {
		if !stormy {
			a.requests[i] += r.requests
		}
		a.recoveries[i] = append(a.recoveries[i], r.recoveries...)
		a.contests[i].add(r.contest)
	}
}

// check logs the totals, and requires that the runs have covered what they should.
func (a *totals) check(t *testing.T, covered ...string) {
	for _, d := range knownDifferences {
		t.Logf("%8d %s", a.known[d.name], d.name)
	}
	for _, what := range covered {
		t.Logf("%8d %s", a.counts[what], what)
		if *seeds >= seedsForCoverage && a.counts[what] == 0 {
			t.Errorf("no seed covers %q", what)
		}
	}
}

// checkRecovery compares the requests and the times until stores were current.
func (a *totals) checkRecovery(t *testing.T) {
	if *seeds >= seedsForCoverage && float64(a.requests[0]) > moreRequests*float64(a.requests[1]) {
		t.Errorf("%d requests, client-go sent %d", a.requests[0], a.requests[1])
	}
	for i, impl := range []string{"ours", clientGo} {
		all := a.recoveries[i]
		slices.Sort(all)
		t.Logf("%s: %d requests", impl, a.requests[i])
		if n := len(all); n > 0 {
			t.Logf("%s: %d recoveries, median %v, p90 %v, longest %v", impl, n, all[n/2],
				all[n*9/10], all[n-1])
		}
	}
}

func (r *contestReport) add(other contestReport) {
	r.leaderless += other.leaderless
	r.overlap += other.overlap
	r.overlaps += other.overlaps
	r.lasted += other.lasted
	r.requests += other.requests
}

// checkElections requires that there is about as often a leader as with client-go, and no more
// requests for the lease.
func (a *totals) checkElections(t *testing.T) {
	for i, impl := range []string{"ours", clientGo} {
		r := a.contests[i]
		t.Logf("%s: %v, without a leader %v, %d overlaps of %v, %.3f requests a second", impl,
			r.lasted, r.leaderless, r.overlaps, r.overlap,
			float64(r.requests)/r.lasted.Seconds())
	}
	mine, theirs := a.contests[0], a.contests[1]
	if *seeds >= seedsForCoverage && (mine.leaderless > theirs.leaderless*11/10 ||
		mine.requests > theirs.requests*11/10) {
		t.Errorf("more than a tenth more time without a leader, or requests")
	}
}
