// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	"example.com/informerstack/leaderelection"
)

// The duties of electors that nothing hinders. A candidate tries again within retryWithin, plus the
// time of a slow request before it.
const (
	retryWithin  = retryPeriod + retryPeriod*6/5 // RetryPeriod and JitterFactor times RetryPeriod
	slowRequest  = 8 * time.Second
	takenWithin  = retryWithin + slowRequest
	leadsWithin  = leaseDuration + takenWithin
	assignWithin = time.Minute + pingEvery + answerWithin // by the coordinator
	// a LeaseCandidate: a watch, a list and a write in a second, if it is deleted again and again
	registrationPerMinute = 40
)

// checkDutiesOfElection checks what electors must do, and not only what they must not.
func (w *world) checkDutiesOfElection(terms []*term) {
	w.noteTrouble()
	if w.candidates[0].lock == coordinated {
		w.coordinate()
	}
	calm := time.Since(w.troubled)
	leads, free := false, w.candidates[0].lock != coordinated
	for _, c := range w.candidates {
		leads = leads || c.acts()
		free = free && w.holder(c.lock) == ""
		if c.lock == coordinated && calm > assignWithin {
			c.checkRegistered()
		}
	}
	limit := leadsWithin
	if w.candidates[0].lock == coordinated {
		limit += assignWithin
	}
	switch {
	case !leads && calm > limit:
		w.violate(6, "all is well for %v, and no candidate leads", calm)
	case free && calm > takenWithin:
		w.violate(6, "all is well for %v, and the lease is free", calm)
	}
	if calm > limit {
		w.cover("election duties checked")
	}
	for _, t := range terms {
		t.checkLost(calm)
		t.checkToken()
	}
}

// noteTrouble notes that something hinders the electors, or did a moment ago.
func (w *world) noteTrouble() {
	for _, c := range w.candidates {
		mode, _ := c.gate.state()
		c.mu.Lock()
		t := c.terms
		if len(w.endings) > 0 || mode != open || c.trap != "" || !c.stopping.IsZero() ||
			len(t) > 0 && !t[len(t)-1].asked.IsZero() && t[len(t)-1].returned.IsZero() {
			w.troubled = time.Now()
		}
		c.mu.Unlock()
	}
}

// checkLost checks that a term does not end while nothing fails, and not before the work has
// returned after a stop.
func (t *term) checkLost(calm time.Duration) {
	c := t.c
	c.mu.Lock()
	over, lost, returned := t.over, t.lost, t.returned
	exited, judged := c.exited, t.judged
	t.judged = !over.IsZero()
	c.mu.Unlock()
	switch {
	case over.IsZero() || judged || !exited.IsZero() && !exited.After(over):
	case lost && calm > leadsWithin:
		c.violate(6, "%s has lost the lease, and all was well for %v", c.name, calm)
	case lost:
		c.cover("term lost")
	case !c.has(abandons) && (returned.IsZero() || returned.After(over)):
		c.violate(6, "%s ends its term after a stop while its work runs", c.name)
	}
}

// checkToken checks that the token of a term is newer than those of others before.
func (t *term) checkToken() {
	c := t.c
	token, ok := leaderelection.FencingTokenFromContext(t.ctx)
	if !ok || c.isOver() {
		return
	}
	l := c.ledgers[token.UID]
	if l == nil {
		l = &ledger{}
		c.ledgers[token.UID] = l
	}
	accepted, by := l.write(c.identity, token)
	switch {
	case !accepted:
		c.violate(6, "%s leads with the old token %v", c.name, token)
	case by != "":
		c.violate(6, "%s leads with the token of %s, %v", c.name, by, token)
	}
}

// checkEnded checks that a program sends nothing more after its Run has returned, and that it has
// released the lease, unless a request failed after the stop or in the release.
func (c *candidate) checkEnded() {
	if c.impl != ours || !isClosed(c.ended) {
		return
	}
	if n := c.gate.electionRequests(); n != c.requests {
		c.violate(8, "%s has sent %d requests after Run returned", c.name, n-c.requests)
	}
	if c.judged {
		return
	}
	c.judged = true
	c.mu.Lock()
	stopped, disturbed := c.stopping, c.disturbed
	c.mu.Unlock()
	if c.election != "release" || c.lock == coordinated || stopped.IsZero() || disturbed {
		return
	}
	c.cover("release checked")
	for _, half := range halves[c.lock] { // perhaps it never wrote, and another one's is left
		s := c.now[half]
		if s.by == c && s.at.Before(c.left) && c.holder(c.lock) == c.identity {
			c.violate(6, "%s has not released the %s", c.name, half)
		}
	}
}
