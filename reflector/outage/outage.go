// SPDX-License-Identifier: Apache-2.0

// Package outage shortens the waits of reflectors after an outage of their server.
//
//	reflector A ── Answered ──▶ [outage] ── wake ──▶ reflectors B, C
//
// After an outage each reflector waits out its own backoff, which may last a minute, although
// another one has already reached the server. Reflectors with the same Group share this knowledge.
// informer.New uses the Group of its client and server, see [Of]; reflector.Options.Outage selects
// another.
//
// Connection errors, 5xx, 429 and 401 are failures of the server. Any other error, such as 403, 404
// or 410, is an answer, and the member's own trouble. A Group ends waits in two ways:
//
//   - The scout is one of the members that wait for the server. It tries 2 to 3.5 s after its own
//     last request and after the last scout. A member that was well before goes first, then one
//     that has failed fewer times since: a member that always fails is the last in turn.
//   - The news is the first answer to a member after a failure. It ends the waits of the others
//     within a second, or, if it has done so since they recovered last, 2 to 3.5 s after their own
//     last requests.
//
// So when the server answers again, a scout asks it within 3.5 s, and each other member that was
// well within a second of that answer or 3.5 s after its own last request, whichever is later. This
// also holds for a Group with one member. It does not hold for a member with a request that hangs,
// or if the server has asked for a longer wait.
//
// While the server is away, a Group sends at most one request in 2 s more than its members would
// on their own, however many they are. After an outage it sends one more for each.
//
// A member that was well and is refused may be a scout, because a server that starts refuses its
// clients for a while. A member that has failed sixteen times although the server has answered has
// trouble of its own: it is no scout any more.
//
// A member has recovered when it has not failed for 5 s after an answer. An answer alone shows
// nothing: if each member's LIST is answered and its WATCH then fails, the answers would wake the
// members for ever. A server that is well for little more than 5 s, again and again, gets up to
// four times as many requests as without a Group.
//
// Read outage.go; client.go finds the Group of a client. Then go test ./reflector/outage.
// Goroutines: none. Locking: Group has a mutex, which also guards its members.
package outage

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

const (
	minPace, maxPace = 2 * time.Second, 3500 * time.Millisecond // between scouts

	newsWindow = 750 * time.Millisecond // in which the members try after an answer

	// maxDoubts is how many failures after an answer of the server show that it is well, and the
	// member is not.
	maxDoubts = 16

	maxRetryAfter = time.Minute // the longest wait that a server is granted

	recovery = 5 * time.Second // how long a member that has recovered has not failed
)

// Member is a reflector in a Group. Its methods do not block, and are called by one goroutine.
//
//	M1  a member in the state well waits on its own
//	M2  from one recovery to the next, news end at most one wait before its ready time
type Member struct {
	Group *Group // nil: it waits on its own

	// Group.mu guards the fields below.

	state     state
	wellSince time.Time // when state became well; zero before the first answer
	wasWell   bool      // it has recovered once
	failures  int       // since it recovered last, with refusals
	seen      int       // Group.answers at the first of them
	doubts    int       // the failures that followed an answer to any member
	woken     bool      // news has ended a wait since it recovered last
	notBefore time.Time // until then the server asked the member to wait
}

// state is how the last request of a member ended.
type state int

const (
	well    state = iota // answered
	refused              // answered with an error of the member's own
	failed               // not answered, or answered with an error of the server
)

// Failed notes that the server failed a request. It may have asked the member to wait for
// retryAfter; a minute counts at most.
func (m *Member) Failed(retryAfter time.Duration) {
	if m.Group == nil {
		return
	}
	m.Group.mu.Lock()
	defer m.Group.mu.Unlock()
	m.failLocked(failed, time.Now().Add(min(retryAfter, maxRetryAfter)))
}

// Refused notes that the server answered a request with an error of the member's own, such as 403.
// It returns true if the server had failed the one before, which is news for the other members.
func (m *Member) Refused() (isBack bool) {
	if m.Group == nil {
		return false
	}
	m.Group.mu.Lock()
	defer m.Group.mu.Unlock()
	isBack = m.state == failed
	m.answerLocked(isBack)
	m.failLocked(refused, time.Time{})
	return isBack
}

// Answered notes that the server answered a request. If it had failed or refused the one before,
// that is news for the other members.
func (m *Member) Answered() {
	if m.Group == nil {
		return
	}
	m.Group.mu.Lock()
	defer m.Group.mu.Unlock()
	m.answerLocked(m.state != well)
	if m.state != well || m.wellSince.IsZero() {
		m.wellSince = time.Now()
	}
	m.state = well
}

func (m *Member) answerLocked(isNews bool) {
	m.Group.answers++
	if isNews {
		m.Group.newsLocked()
	}
}

func (m *Member) failLocked(how state, notBefore time.Time) {
	if m.state == well && !m.wellSince.IsZero() && time.Since(m.wellSince) >= recovery {
		m.wasWell, m.failures, m.doubts, m.woken = true, 0, 0, false
	}
	if m.failures == 0 {
		m.seen = m.Group.answers
	}
	m.failures++
	if m.Group.answers != m.seen {
		m.doubts++
	}
	m.state, m.notBefore = how, notBefore
}

// Wait begins a wait of d, or shorter if the Group ends it, or longer if the server has asked for
// that. wake delivers a value when the member should try again. The caller must call leave when the
// wait ends, even if it ends for another reason. If the member waits on its own, wake is nil, and
// the caller waits for d itself.
func (m *Member) Wait(d time.Duration) (wake <-chan time.Time, leave func()) {
	g := m.Group
	if g == nil {
		return nil, func() {}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if m.state == well {
		return nil, func() {}
	}
	now := time.Now()
	w := &wait{
		member: m, isOutage: m.doubts < maxDoubts && (m.state == failed || m.wasWell),
		ready: later(now.Add(pace()), m.notBefore), due: later(now.Add(d), m.notBefore),
	}
	w.fires, w.timer = w.due, time.NewTimer(w.due.Sub(now))
	g.waiting = append(g.waiting, w)
	g.scheduleLocked()
	return w.timer.C, func() { g.leave(w) }
}

// Group is a number of reflectors that use one server. The zero value is an empty group. It is safe
// for concurrent use, and must not be copied.
//
//	O1  waiting contains each wait until its leave is called; then its timer is stopped
//	O2  a wait's timer fires at its due time; the scout's fires earlier, if it is ready earlier
//	    and no scout has tried for a pace
//	O3  due is never later than the end of the member's own wait, unless the server asked for it
type Group struct {
	mu      sync.Mutex
	waiting []*wait   // in no order
	next    time.Time // when the next scout may try
	answers int       // of the server, to any member
}

type wait struct {
	member   *Member
	isOutage bool      // the wait is for the server: the member may be the scout
	ready    time.Time // when the scout may try, and news may end the wait again
	due      time.Time
	timer    *time.Timer
	fires    time.Time // when timer fires: O2
}

// newsLocked ends the waits soon, because the server has answered.
func (g *Group) newsLocked() {
	for _, w := range g.waiting {
		soon := later(time.Now().Add(rand.N(newsWindow)), w.member.notBefore)
		switch {
		case !w.member.woken:
			w.member.woken = true
		case w.isOutage:
			soon = later(soon, w.ready)
		default:
			continue
		}
		w.due = earlier(w.due, soon)
	}
	g.scheduleLocked()
}

// leave ends a wait. If w's timer has ended it, the member tries now; otherwise, for example, it
// was stopped.
func (g *Group) leave(w *wait) {
	g.mu.Lock()
	defer g.mu.Unlock()
	tries := !w.timer.Stop()
	i := slices.Index(g.waiting, w)
	if i < 0 {
		return // it was called before
	}
	last := len(g.waiting) - 1
	g.waiting[i], g.waiting[last] = g.waiting[last], nil
	g.waiting = g.waiting[:last]
	now := time.Now()
	scout := g.scoutLocked()
	if tries && w.isOutage && (scout == nil || !scout.precedes(w, now)) {
		g.next = now.Add(pace()) // it was the scout
	}
	g.scheduleLocked()
}

// scoutLocked returns the wait of the next scout, or nil.
func (g *Group) scoutLocked() (scout *wait) {
	start := later(g.next, time.Now())
	for _, w := range g.waiting {
		if w.isOutage && (scout == nil || w.precedes(scout, start)) {
			scout = w
		}
	}
	return scout
}

// precedes reports that w's member is the scout at start rather than the other one: first one that
// the server did not ask to wait for longer, then by rank, then one that has failed fewer times.
func (w *wait) precedes(other *wait, start time.Time) bool {
	m, n := w.member, other.member
	return cmp.Or(
		later(m.notBefore, start).Compare(later(n.notBefore, start)),
		cmp.Compare(m.rankLocked(), n.rankLocked()),
		cmp.Compare(m.failures, n.failures),
	) < 0
}

// rankLocked is lowest for a member that waits for the server alone: it was well before.
func (m *Member) rankLocked() int {
	switch {
	case !m.wasWell:
		return 2
	case m.state == refused:
		return 1
	}
	return 0
}

// scheduleLocked keeps O2.
func (g *Group) scheduleLocked() {
	scout := g.scoutLocked()
	for _, w := range g.waiting {
		fires := w.due
		if w == scout {
			fires = earlier(fires, later(g.next, w.ready))
		}
		if !fires.Equal(w.fires) {
			w.fires = fires
			w.timer.Reset(time.Until(fires))
		}
	}
}

func pace() time.Duration { return minPace + rand.N(maxPace-minPace) }

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
