// SPDX-License-Identifier: Apache-2.0

// Package outage shortens the waits of reflectors after an outage of their server.
//
//	reflector A ── Answered ──▶ [outage] ── wake ──▶ reflectors B, C
//
// After an outage each reflector waits out its own backoff, which may last a minute, although
// another one has already reached the server. Reflectors with the same Group share this knowledge.
// informer.New uses the Group of its client, see [Of]; reflector.Options.Outage selects another.
// A Group with one member changes nothing.
//
// While several members wait, they try in turn, at even intervals:
//
//	interval = round / number of waiting members
//	round    = twice the time since the outage began, at least 1 s, at most 20 s
//
// So in a long outage each member tries every 20 s, and five members try every four seconds. That
// is as often as without a Group, where the waits of a reflector grow to 45 s on average, and start
// again every two minutes. The first answer counts like the beginning of an outage, so that the
// others try within a few seconds. The next turn belongs to the member with the shortest rest of
// its own wait: a member that has just begun to fail goes before a member that has failed for long.
//
// So after a long outage the first of n members tries within 20 s / n, and the last one has its
// answers within four seconds of that, even if a 410 makes it list again: two members within 14 s,
// five within 8 s. Shorter rounds would cost the server more requests than no Group.
//
// Read outage.go; client.go finds the Group of a client. Then go test ./reflector/outage.
// Goroutines: only that of a timer. Locking: Group has a mutex of its own.
package outage

import (
	"container/list"
	"sync"
	"time"
)

const (
	firstRound, lastRound = time.Second, 20 * time.Second

	// maxAnswers are a 410 and the list that follows.
	maxAnswers = 2
)

// Member is a reflector in a Group. It is used by one goroutine.
type Member struct {
	Group *Group // nil: it waits on its own

	outage    bool      // a request failed since Recovered
	answers   int       // that the server gave since then, up to maxAnswers
	notBefore time.Time // the server asked not to be asked again before
}

// Failed notes that a request failed. The server may have asked the member to wait for retryAfter.
func (m *Member) Failed(retryAfter time.Duration) {
	if m.Group == nil {
		return
	}
	m.notBefore = time.Now().Add(retryAfter)
	if !m.outage {
		m.outage = true
		m.Group.begin()
	}
}

// Answered notes that the server answered. If requests of this member failed before, the other
// members try soon. Only the first maxAnswers answers until Recovered have this effect, because a
// server that answers and fails in turn is not well.
func (m *Member) Answered() {
	if m.outage && m.answers < maxAnswers {
		m.answers++
		m.Group.answer()
	}
}

// Recovered notes that a watch has shown that the server is well.
func (m *Member) Recovered() { m.outage, m.answers = false, 0 }

// Wait begins a wait of about d. The caller must call leave when the wait ends. If the wait is due
// to an outage, the channel delivers the present time, once, when the member should try again.
// Otherwise the channel is nil.
func (m *Member) Wait(d time.Duration) (wake <-chan time.Time, leave func()) {
	if !m.outage {
		return nil, func() {}
	}
	return m.Group.wait(m.notBefore, d)
}

// Group is a number of reflectors that use one server. The zero value is an empty group.
//
//	O1  waiting contains the waits whose leave was not called and that were not woken
//	O2  a channel is sent to at most once, when it leaves waiting: the send never blocks
//	O3  timer runs until the next turn if waiting is not empty, and is nil otherwise
//	O4  if inTurn, an interval lies between two turns; if not, at most one member waits, and its
//	    turn is the end of its own wait
type Group struct {
	mu      sync.Mutex
	waiting list.List // of *wait
	timer   *time.Timer
	inTurn  bool
	began   time.Time // of the outage, for the length of the interval
	last    time.Time // the last turn, or the beginning
}

type wait struct {
	wake           chan time.Time // with a capacity of one
	notBefore, due time.Time      // due is the end of the member's own wait, not before notBefore
}

// begin notes that an outage begins for a member. If no other one waits, it may be the member's
// own, and its waits are its own too.
func (g *Group) begin() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.inTurn = g.waiting.Len() > 0
	g.restartLocked()
}

// answer notes that the server answered a member.
func (g *Group) answer() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting.Len() > 0 {
		g.inTurn = true
	}
	g.restartLocked()
}

// restartLocked makes the intervals short again.
func (g *Group) restartLocked() {
	g.began = time.Now()
	g.last = g.began
	g.scheduleLocked()
}

func (g *Group) wait(notBefore time.Time, d time.Duration) (wake <-chan time.Time, leave func()) {
	due := time.Now().Add(d)
	if due.Before(notBefore) {
		due = notBefore
	}
	w := &wait{make(chan time.Time, 1), notBefore, due}
	g.mu.Lock()
	defer g.mu.Unlock()
	element := g.waiting.PushBack(w)
	if g.waiting.Len() > 1 && !g.inTurn {
		g.inTurn = true
		g.began, g.last = time.Now(), time.Now()
	}
	g.scheduleLocked()
	return w.wake, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.waiting.Remove(element) // a no-op if it was woken
		g.scheduleLocked()
	}
}

// turn wakes the member that would be the first to try on its own.
func (g *Group) turn() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if g.timer == nil || now.Before(g.nextLocked()) {
		return // it was scheduled anew while the timer fired
	}
	var first *list.Element
	for e := g.waiting.Front(); e != nil; e = e.Next() {
		w := e.Value.(*wait)
		if now.Before(w.notBefore) {
			continue
		}
		if first == nil || w.due.Before(first.Value.(*wait).due) {
			first = e
		}
	}
	if first != nil {
		g.waiting.Remove(first).(*wait).wake <- now
	}
	g.last = now
	g.scheduleLocked()
}

// nextLocked returns the time of the next turn.
func (g *Group) nextLocked() time.Time {
	if !g.inTurn {
		return g.waiting.Front().Value.(*wait).due
	}
	round := min(max(2*g.last.Sub(g.began), firstRound), lastRound)
	return g.last.Add(round / time.Duration(g.waiting.Len()))
}

// scheduleLocked keeps O3.
func (g *Group) scheduleLocked() {
	if g.timer != nil {
		g.timer.Stop()
		g.timer = nil // a Group outlives its reflectors' synctest bubble, a timer does not
	}
	if g.waiting.Len() > 0 {
		g.timer = time.AfterFunc(time.Until(g.nextLocked()), g.turn)
	}
}
