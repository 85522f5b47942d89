// SPDX-License-Identifier: Apache-2.0

// Package outage shortens the waits of reflectors after an outage of their server.
//
//	reflector A ── Note ──▶ [outage] ── wake ──▶ reflectors B, C
//
// After an outage each reflector waits out its own backoff, which may last a minute, although
// another one has already reached the server. Reflectors with the same Group share this knowledge.
// informer.New uses the Group of its client, see [Of]; reflector.Options.Outage selects another.
// A Group with one member changes nothing.
//
// During the outage each reflector tries at its own times, so the server gets hardly more requests
// than without a Group. If no member has tried for a while, the Group lets one of them try. The
// first reflector that reaches the server wakes two others, each of which wakes two more when it
// succeeds. A reflector that fails again wakes none, and is not woken again for 3 s, then 6 s, up
// to half a minute.
//
// Read outage.go; client.go finds the Group of a client. Then go test ./reflector/outage.
// Goroutines: none but that of a timer. Locking: Group has a mutex of its own.
package outage

import (
	"container/list"
	"sync"
	"time"

	utilwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
)

const (
	// fanOut is the number of reflectors that one success wakes.
	fanOut = 2
	// minSilence is the shortest silence after which a Group lets a member try.
	minSilence = 3 * time.Second
)

// wakePauses are the times for which no success wakes a member after one has. They start again
// every two minutes. Without them, members whose requests succeed and fail in turn (LISTs are
// allowed, say, and WATCHes are not) would wake each other without end.
var wakePauses = utilwait.Backoff{
	Duration: 3 * time.Second, Factor: 2, Steps: 10, Cap: 30 * time.Second,
}

// Member is a reflector in a Group. It is used by one goroutine.
type Member struct {
	Group  *Group // nil: it waits on its own
	outage bool   // its last request failed

	nextPause   utilwait.DelayFunc // of wakePauses; guarded by Group.mu, like asleepUntil
	asleepUntil time.Time          // no success wakes it before
}

// Note notes whether a request failed. The first success after failures wakes two members.
func (m *Member) Note(outage bool) {
	ended := m.outage && !outage
	m.outage = outage
	if ended && m.Group != nil {
		m.Group.recovered()
	}
}

// Wait begins a wait of at most d, at whose end leave must be called. If the wait is due to an
// outage, the channel delivers the present time, once, when the member should try now.
func (m *Member) Wait(d time.Duration) (wake <-chan time.Time, leave func()) {
	if m.Group == nil || !m.outage {
		return nil, func() {}
	}
	return m.Group.wait(m, d)
}

func (m *Member) nextPauseLocked() time.Duration {
	if m.nextPause == nil {
		m.nextPause = wakePauses.DelayWithReset(clock.RealClock{}, 2*time.Minute)
	}
	return m.nextPause()
}

// Group is a number of reflectors that use one server. The zero value is an empty group.
//
//	O1  waiting contains the waits whose leave was not called and that were not woken, in order of
//	    their begin; total is the sum of their durations
//	O2  a channel is sent to at most once, when it leaves waiting: the send never blocks
//	O3  timer runs if waiting is not empty, and is nil if every wait has been left
//	O4  between two successes that wake a member is the pause that the first one began
type Group struct {
	mu      sync.Mutex
	waiting list.List // of *wait
	total   time.Duration
	timer   *time.Timer // wakes a member after a silence
}

type wait struct {
	member *Member
	wake   chan time.Time // with a capacity of one
	d      time.Duration  // 0 after its end
}

func (g *Group) wait(m *Member, d time.Duration) (wake <-chan time.Time, leave func()) {
	w := &wait{m, make(chan time.Time, 1), d}
	g.mu.Lock()
	defer g.mu.Unlock()
	element := g.waiting.PushBack(w)
	g.total += d
	g.restartLocked()
	return w.wake, func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.removeLocked(element)
		if g.waiting.Len() == 0 && g.timer != nil {
			g.timer.Stop()
			g.timer = nil // a Group outlives its reflectors' synctest bubble, a timer does not
		}
	}
}

// recovered wakes the two members that have waited longest, of those that may be woken.
func (g *Group) recovered() {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, count := time.Now(), 0
	for e := g.waiting.Front(); e != nil && count < fanOut; {
		next := e.Next()
		if m := e.Value.(*wait).member; !now.Before(m.asleepUntil) {
			m.asleepUntil = now.Add(m.nextPauseLocked())
			g.removeLocked(e).wake <- now
			count++
		}
		e = next
	}
}

// probe wakes the member that has waited longest, because none has tried for a while.
func (g *Group) probe() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if first := g.waiting.Front(); first != nil {
		g.removeLocked(first).wake <- time.Now()
	}
	g.restartLocked()
}

// removeLocked ends a wait. It is a no-op if the wait has ended.
func (g *Group) removeLocked(element *list.Element) *wait {
	w := g.waiting.Remove(element).(*wait)
	g.total -= w.d
	w.d = 0
	return w
}

// restartLocked begins a new silence. It is a third longer than the average time between two tries
// of n members, which is the average wait divided by n. So most tries come from the members' own
// waits, and one member alone is never woken.
func (g *Group) restartLocked() {
	n := time.Duration(g.waiting.Len())
	if n == 0 {
		return
	}
	silence := max(minSilence, g.total/n/n*4/3)
	if g.timer == nil {
		g.timer = time.AfterFunc(silence, g.probe)
		return
	}
	g.timer.Reset(silence)
}
