// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// contestants are the candidates of a contest.
type contestants struct {
	candidates []*candidate // those that run
	everyone   []*candidate
	episode    episode
	troubled   time.Time // when something last failed, or a candidate began or ended
	locks
	coordinator
}

// episode is what follows one step of a calm contest.
type episode struct {
	step   string
	since  time.Time
	leader *candidate
}

// contestReport is the result of a contest.
type contestReport struct {
	outcomes   []string      // of the steps of a calm contest
	leaderless time.Duration // after the first leader
	overlap    time.Duration // while more than one candidate acted
	overlaps   int
	lasted     time.Duration
	requests   int
}

// checkContest checks what must hold at any time, and replaces the candidates that have exited.
func (w *world) checkContest() {
	w.checkLocks()
	for _, c := range w.everyone {
		c.checkEnded()
	}
	for i, c := range w.candidates {
		if c.isOver() {
			next := c.setup
			if c.migrates {
				next.lock = migrates[c.lock]
			}
			w.candidates[i] = w.newCandidate(next, i)
			w.troubled = time.Now()
		}
	}
	terms := w.terms()
	for _, a := range w.everyone {
		limit := electionPerMinute
		if a.lock == coordinated {
			limit += registrationPerMinute
		}
		if _, _, election := a.gate.lastMinute(); election > limit*len(halves[a.lock]) {
			w.violate(7, "%s sent %d requests for the lease in a minute", a.name, election)
		}
		a.checkCalls()
	}
	for _, a := range terms {
		for _, b := range terms {
			a.checkAlone(b)
		}
	}
	if w.impl == ours && len(w.candidates) > 0 {
		w.checkDutiesOfElection(terms)
	}
}

// terms returns the terms of the last minutes.
func (w *world) terms() (terms []*term) {
	for _, c := range w.everyone {
		c.mu.Lock()
		for _, t := range c.terms {
			if _, to := span(t.started, t.returned, c.exited); time.Since(to) < 2*leaseDuration {
				terms = append(terms, t)
			}
		}
		c.mu.Unlock()
	}
	return terms
}

// checkAlone checks that no other candidate led before the work had returned, unless the lease was
// deleted.
func (t *term) checkAlone(other *term) {
	c := t.c
	begun, until := t.working()
	from, to := other.acting()
	if t == other || !from.After(begun) || !overlaps(begun, until, from, to) || t.overlaps[other] {
		return
	}
	t.overlaps[other] = true
	won := begun.Add(-leaseDuration) // or later: the answer may have been slow
	if c.deletedBetween(c.lock, other.c.lock, won, from) {
		c.cover("two lead as the lock was deleted")
		return
	}
	what := "finishes its work"
	if a, b := t.acting(); overlaps(a, b, from, to) {
		what = "acts"
	}
	c.violate(6, "%s %s while %s leads", c.name, what, other.c.name)
}

func overlaps(a, b, from, to time.Time) bool { return later(a, from).Before(earlier(b, to)) }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// checkCalls checks the order of the callbacks.
func (c *candidate) checkCalls() {
	started, stopped, leaders := c.counts()
	switch {
	case stopped > started:
		c.violate(6, "%s: OnStoppedLeading without OnStartedLeading", c.name)
	case !c.continues() && started > 1 || started > stopped+1:
		c.violate(6, "%s: started %d times, stopped %d times", c.name, started, stopped)
	}
	if len(slices.Compact(slices.Clone(leaders))) < len(leaders) {
		c.violate(6, "%s: OnNewLeader repeats a leader: %v", c.name, leaders)
	}
}

// counts returns how often a term began and ended, and the leaders that were reported.
func (c *candidate) counts() (started, stopped int, leaders []string) {
	for _, made := range c.since(time.Time{}) {
		switch made.what {
		case "started":
			started++
		case "stopped":
			stopped++
		case "leader":
			leaders = append(leaders, made.name)
		}
	}
	return started, stopped, leaders
}

// checkContestQuiet checks that one candidate leads when all is well, and that all know it.
func (w *world) checkContestQuiet() {
	if w.violated() {
		return
	}
	leads := 0
	for _, c := range w.candidates {
		holder := w.holder(c.lock)
		if c.acts() {
			leads++
		}
		if c.acts() != (c.identity == holder) {
			w.violate(6, "the holder is %q, and %s acts: %v", holder, c.name, c.acts())
		}
		if _, _, leaders := c.counts(); len(leaders) == 0 || leaders[len(leaders)-1] != holder {
			w.violate(6, "%s: OnNewLeader reported %v, the holder is %s", c.name, leaders, holder)
		}
	}
	if leads != 1 {
		w.violate(6, "%d candidates lead", leads)
	}
}

// endEpisode adds the outcome of the last step: what each candidate was called, by its role. It
// ends the faults of requests that were not sent: they would be part of the next episode.
func (w *world) endEpisode() {
	w.server.Faults().Clear()
	e, next := w.episode, w.inRole(0)
	if e.step == "" {
		return
	}
	var roles []string
	for _, c := range w.everyone {
		role := "3 other: "
		switch c {
		case e.leader:
			role = "1 leader: "
		case next:
			role = "2 next: "
		}
		if text := e.describe(c, next); text != "" {
			roles = append(roles, role+text)
		}
	}
	slices.Sort(roles)
	w.report.contest.outcomes = append(w.report.contest.outcomes,
		e.step+": "+strings.Join(slices.Compact(roles), "; "))
}

// describe returns the calls of a candidate since the step. It leaves out that there is no leader,
// or the old one: a candidate may ask before or after the change.
func (e episode) describe(c, next *candidate) string {
	var words []string
	started := e.leader == c
	for _, made := range c.since(e.since) {
		switch {
		case made.what == "stopped" && !started: // checkCalls reports it
		case made.what != "leader":
			started = true
			words = append(words, made.what)
		case made.name == "" || made.name == e.leader.name:
		case made.name == c.name:
			words = append(words, "leads")
		case made.name == next.name:
			words = append(words, "follows")
		default:
			words = append(words, fmt.Sprint("follows ", made.name))
		}
	}
	return strings.Join(words, ", ")
}

// sumUp completes the report.
func (w *world) sumUp() {
	r := &w.report.contest
	r.lasted = time.Since(w.begun)
	var until time.Time
	var byStart []*term
	for _, c := range w.everyone {
		r.requests += c.gate.leases
		byStart = append(byStart, c.terms...)
	}
	slices.SortFunc(byStart, func(a, b *term) int { return a.started.Compare(b.started) })
	for _, t := range byStart {
		from, to := t.acting()
		switch {
		case from.Before(until):
			r.overlap += earlier(to, until).Sub(from)
			r.overlaps++
		case !until.IsZero():
			r.leaderless += from.Sub(until)
		}
		until = later(until, to)
	}
}
