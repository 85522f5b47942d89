// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// limit is how many shards a member takes at most, as the limitAnnotation of its Lease says.
type limit struct {
	most  int
	stuck bool // it cannot use more: it does not fill its caches, or takes no shard
}

var unlimited = limit{most: math.MaxInt}

// String is the value of a limitAnnotation.
func (l limit) String() string {
	text := strconv.Itoa(l.most)
	if l.stuck {
		text += " stuck"
	}
	return text
}

// parseLimit returns unlimited for any other text, such as "".
func parseLimit(text string) limit {
	number, stuck := strings.CutSuffix(text, " stuck")
	most, err := strconv.Atoi(number)
	if err != nil || most < 0 {
		return unlimited
	}
	return limit{most, stuck}
}

// pace decides how many shards this member takes. A member that cannot fill its caches gives its
// new shards back, and a process that dies soon after each start takes few shards with it.
//
//	waiting ──▶ growing ──▶ full
//	               │ ▲       │
//	               ▼ │       │
//	              stuck ◀────┘
//
//	waiting  it takes nothing: members with the same Config.Identity have died young
//	growing  it takes an eighth of its share, and doubles that in every second RetryPeriod while
//	         all of its shards are active
//	full     it takes its share
//	stuck    a shard has not become active in time: it keeps the active ones, and waits
//
// If the limits of all members are too low for all shards, some are ignored, those of stuck members
// last: see binding. So a member that is alone takes every shard at once.
type pace struct {
	phase pacePhase
	began time.Time // of the term
	next  time.Time // when a growing member may take more, or one that is stuck tries again
	most  int       // that a growing member takes
	had   int       // active shards when it became stuck
	tries int       // how often it has been stuck since a shard became active
}

type pacePhase string

// The phases.
const (
	paceWaiting pacePhase = "waiting"
	paceGrowing pacePhase = "growing"
	paceFull    pacePhase = "full"
	paceStuck   pacePhase = "stuck"
)

// In LeaseDurations:
const (
	// A shard must become active within syncWithin after it was acquired, or after the last object
	// of a list, but in any case within syncAtMost.
	syncWithin = 4
	syncAtMost = 16
	// A member that has lived for less than youngFor, and is over, has died young.
	youngFor = 20
	// mostWaiting bounds the doublings of the wait: 2, 4, 8 or 16 after one, two, three or more
	// members that have died young.
	mostWaiting = 4
)

const (
	mostTries  = 3 // doublings of stuckFor
	firstShare = 8 // a member begins with an eighth of its share
)

// syncUntil returns when the member is stuck, if a shard has been syncing since then and no list
// brings another object.
func (t *tenure) syncUntil(since time.Time) time.Time {
	until, most := since, since.Add(syncAtMost*t.shards.config.LeaseDuration)
	if last := t.shards.caches.status().listed; last.After(since) {
		until = last
	}
	if until = until.Add(syncWithin * t.shards.config.LeaseDuration); until.After(most) {
		until = most
	}
	return until
}

// adjust decides on the limit of this member, which its next renewal announces. It is called after
// each change, and makes the manager call it when time alone changes something.
func (t *tenure) adjust(now time.Time) {
	p, l := &t.pace, t.load()
	share := len(t.shards.slots) / max(len(t.plan.members), 1)
	if !l.syncing.IsZero() && p.phase != paceStuck {
		if due := t.syncUntil(l.syncing); now.Before(due) {
			t.at(due)
		} else {
			p.phase, p.had = paceStuck, l.active
			p.next = now.Add(stuckFor * t.shards.config.LeaseDuration << min(p.tries, mostTries))
			p.tries++
			t.shards.lagging.Store(&l.syncing)
			t.shards.noteError(t.led, fmt.Errorf("fill the caches of new shards: not done after "+
				"%v; others take all shards but %d, if they can", now.Sub(l.syncing), l.active))
		}
	}
	starts, settled := p.phase == paceGrowing || p.phase == paceWaiting, l.active == l.owned
	switch {
	case starts && settled && l.active >= max(share, 1):
		p.phase, p.tries = paceFull, 0
	case p.phase == paceWaiting:
		if until := p.began.Add(t.penalty(now)); now.Before(until) {
			t.at(until)
		} else {
			p.grow(now, firstStep(share), t.shards.config.RetryPeriod)
		}
	case p.phase == paceStuck && l.active > p.had, // the caches work
		p.phase == paceStuck && l.syncing.IsZero() && !now.Before(p.next):
		if l.active > p.had {
			p.tries = 0
		}
		t.shards.lagging.Store(nil)
		p.grow(now, l.active+firstStep(share), t.shards.config.RetryPeriod)
		t.shards.wakeUp() // it may have its share already
	case p.phase != paceFull && now.Before(p.next):
	case p.phase == paceGrowing && settled && p.most >= share: // others have the rest
		p.phase, p.tries = paceFull, 0
	case p.phase == paceGrowing && settled:
		p.grow(now, 2*p.most, t.shards.config.RetryPeriod)
	}
	if p.phase != paceFull && now.Before(p.next) {
		t.at(p.next)
	}
	limit := p.limit(l)
	t.member.limit.Store(&limit)
}

// grow begins a step.
func (p *pace) grow(now time.Time, most int, retryPeriod time.Duration) {
	p.phase, p.most, p.next = paceGrowing, most, now.Add(2*retryPeriod)
}

// firstStep is the number of shards with which a member begins: an eighth of its share, at least 1.
func firstStep(share int) int { return max((share+firstShare-1)/firstShare, 1) }

// limit is what the phase allows. A member that has more does not give it up for that.
func (p *pace) limit(l load) limit {
	switch p.phase {
	case paceWaiting:
		return limit{most: l.owned}
	case paceGrowing:
		return limit{most: max(p.most, l.owned)}
	case paceStuck:
		return limit{most: l.active, stuck: true}
	}
	return unlimited
}

// penalty is how long this member takes nothing, because others with its Config.Identity have died
// young, and their Leases are still there: its process crashes again and again, or is cut off.
func (t *tenure) penalty(now time.Time) time.Duration {
	t.shards.mu.Lock()
	defer t.shards.mu.Unlock()
	deaths := 0
	for _, p := range t.shards.peers {
		if baseOf(p.identity) == t.shards.config.Identity && p.identity != t.me &&
			p.diedYoung(now, youngFor*t.shards.config.LeaseDuration) {
			deaths++
		}
	}
	if deaths == 0 {
		return 0
	}
	return t.shards.config.LeaseDuration << min(deaths, mostWaiting)
}

// baseOf is the Config.Identity in the identity of a term.
func baseOf(identity string) string { return identity[:max(len(identity)-1-identityLen, 0)] }
