// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/reflector"
	"example.com/informerstack/reflector/outage"
)

// The laws of a Group: a member tries early as a scout, 2 s or more after its last request,
// or within a second of news, before that time only once until it has recovered.
const (
	recovery   = 5 * time.Second // without a failure
	minPace    = 2 * time.Second
	maxPace    = 3500 * time.Millisecond
	newsWindow = time.Second

	fewFailures = 8 // so many do not show that a member has trouble of its own
)

// peers are the processes that should be in one Group: their informers are those of one program,
// with a network of their own each.
type peers struct {
	mu      sync.Mutex
	members []*waiting
	news    []time.Time // when the server answered members after a failure
}

// waiting is what the waits of a process's reflector have shown.
type waiting struct {
	peers  *peers // nil: it waits on its own
	isLone bool   // it is its only peer

	mu         sync.Mutex
	begun, due time.Time     // of the last wait; due is the end of its backoff, or after news
	notBefore  time.Time     // the server asked for that
	ended      bool          // a request followed the wait
	early      []earlyEnding // which were not checked yet
	failed     bool          // since the last answer
	wellSince  time.Time     // the first answer after a failure
	woken      bool          // early, since it recovered last
	record
}

// record is what the server has said to a process for certain.
type record struct {
	answered bool      // the last request
	since    time.Time // the first answer after a failure; zero since a failure
	proven   bool      // it has recovered once
	failures int       // since it recovered last
	isAway   bool      // the last failure was the server's own
	heard    bool      // there may have been news since it recovered last
}

// earlyEnding is a request before the end of a wait.
type earlyEnding struct {
	at     time.Time
	waited time.Duration
	again  bool // another one was as early since it recovered last
}

func (w *world) newWaiting(s setup) *waiting {
	v := &waiting{}
	switch s.group {
	case alone:
		return v
	case single:
		v.peers, v.isLone = &peers{}, true
	case shared, joint:
		if w.peers[s.group] == nil {
			w.peers[s.group] = &peers{}
		}
		v.peers = w.peers[s.group]
	}
	v.peers.mu.Lock()
	defer v.peers.mu.Unlock()
	v.peers.members = append(v.peers.members, v)
	return v
}

// begin notes that a wait of d begins.
func (w *waiting) begin(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun, w.due, w.ended = time.Now(), time.Now().Add(d), false
	if w.peers != nil && w.due.Before(w.notBefore) {
		w.due = w.notBefore
	}
	if w.isLone {
		w.boundLocked(w.begun, false)
	}
}

// boundLocked bounds the wait of a member that tries at a time: with the first news, or at the pace
// of scouts. If it has failed often, it may have trouble of its own.
func (w *waiting) boundLocked(at time.Time, isFirst bool) {
	mayScout := w.failures < fewFailures && (w.isAway || w.proven)
	if !isFirst {
		at = later(at, w.begun.Add(maxPace))
	}
	at = later(at, w.notBefore)
	if w.failed && (isFirst || mayScout) && at.Before(w.due) {
		w.due = at
	}
}

// requests notes a request.
func (w *waiting) requests() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if !now.After(w.begun) {
		return // a request that was given up as the wait began
	}
	if !w.ended && now.Before(w.due) {
		waited := now.Sub(w.begun)
		w.early = append(w.early, earlyEnding{now, waited, w.woken})
		w.woken = w.woken || waited < minPace
	}
	w.ended, w.answered = true, false
}

// answers notes that a request has got an answer, which may be an error.
func (w *waiting) answers() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answered = true
}

// note notes what a transition says about the server, as a member of a Group does: every error that
// is followed by a wait is a failure.
func (w *waiting) note(t reflector.Transition) {
	applyErr, isApply := errors.AsType[*reflector.ApplyError](t.Err)
	isLate := isApply && (applyErr.Verb == "process" || applyErr.Verb == "resync")
	if t.To == reflector.Idle || isLate {
		return
	}
	maybe, certain := w.learn(t, isApply)
	if w.peers != nil {
		w.peers.report(w, maybe, certain)
	}
}

// learn learns from a transition. It returns whether it may be news for the other members, and
// whether it is for certain.
func (w *waiting) learn(t reflector.Transition, isApply bool) (maybe, certain bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	isTooLarge := apierrors.HasStatusCause(t.Err, metav1.CauseTypeResourceVersionTooLarge)
	isStatus := errors.As(t.Err, new(apierrors.APIStatus))
	isAnswer := t.Err == nil || t.Pause || isStatus || isTooLarge
	// after a streaming list that failed, the LIST decides
	isOpen := t.From == reflector.Streaming && t.Err != nil && !t.Pause && !isTooLarge &&
		!apierrors.IsResourceExpired(t.Err) && !apierrors.IsGone(t.Err)
	isRequest := !isOpen && (t.From == reflector.Listing || t.From == reflector.Opening ||
		t.From == reflector.Streaming)
	maybe = w.failed && isAnswer && (isRequest || t.Pause)
	seconds, _ := apierrors.SuggestsClientDelay(t.Err)
	if isTooLarge {
		seconds = 0 // it is due to the request, and another one need not wait
	}
	w.notBefore = now.Add(time.Duration(seconds) * time.Second)
	fails := t.Err != nil && t.Pause && !isApply &&
		!strings.Contains(t.Err.Error(), "bring nothing")
	switch {
	case fails && !w.failed && !w.wellSince.IsZero() && now.Sub(w.wellSince) >= recovery:
		w.woken = false
	case !fails && isRequest && (w.failed || w.wellSince.IsZero()):
		w.wellSince = now
	}
	if t.From == reflector.Watching && now.Equal(w.since) {
		w.since = time.Time{} // the kind has changed meanwhile, and the answer did not count
	}
	isSuccess := isRequest && t.Err == nil && w.answered
	w.answered = false // the next phase may send no request: a kind that is gone is known
	certain = w.failed && isSuccess
	w.failed = fails || w.failed && !isRequest && !isApply
	w.record.note(isSuccess, fails, t.Err)
	return maybe, certain
}

// note notes a success or a failure.
func (w *record) note(isSuccess, fails bool, err error) {
	now := time.Now()
	switch {
	case isSuccess && w.since.IsZero():
		w.since = now
	case fails:
		if !w.since.IsZero() && now.Sub(w.since) >= recovery {
			w.proven, w.failures, w.heard = true, 0, false
		}
		w.since = time.Time{}
		w.failures++
		w.isAway = errors.Is(err, syscall.ECONNREFUSED) || apierrors.IsServiceUnavailable(err)
	}
}

// report notes news of a member, and bounds the waits of the others if the news are certain.
func (g *peers) report(from *waiting, maybe, certain bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	if maybe {
		g.news = append(g.news, now)
	}
	for _, w := range g.members {
		if w == from {
			continue
		}
		w.mu.Lock()
		if certain && !w.ended && w.begun.Before(now) {
			w.boundLocked(now.Add(newsWindow), !w.heard)
		}
		w.heard = w.heard || maybe
		w.mu.Unlock()
	}
}

// check checks that the reflector waits no longer than its backoff, and shorter only for a reason.
func (w *waiting) check(p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.early {
		w.checkEarly(p, e)
	}
	w.early = nil
	if w.ended || p.informer.Health().Reflector.Phase != reflector.BackingOff {
		return
	}
	if time.Now().After(w.due) {
		p.violate(7, "%s waits longer than its backoff or its Group allows", p.name)
	}
}

// checkEarly checks that a request before the end of a wait had a reason.
func (w *waiting) checkEarly(p *process, e earlyEnding) {
	switch {
	case p.refused: // a lost change ends a wait
	case w.peers != nil && e.waited >= minPace:
		p.cover("group ends a wait at the pace of scouts")
	case w.peers != nil && !e.again && w.peers.hadNews(e.at):
		p.cover("group ends a wait with news")
		p.cover("news in the Group " + p.group)
	default:
		p.violate(7, "%s ends its wait early, at %v", p.name, e.at.Sub(p.begun))
	}
}

// hadNews reports that there were news within the last second.
func (g *peers) hadNews(at time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, news := range g.news {
		if age := at.Sub(news); age >= 0 && age <= newsWindow {
			return true
		}
	}
	return false
}

// checkEmpty checks that no wait is left in a Group: even a member that has failed for long is its
// scout.
func (w *world) checkEmpty(g *outage.Group) {
	m := outage.Member{Group: g}
	for range 1000 {
		m.Failed(0)
	}
	wake, leave := m.Wait(time.Hour)
	defer leave()
	time.Sleep(time.Minute)
	synctest.Wait()
	select {
	case <-wake:
	default:
		w.violate(8, "all processes have ended, and one waits in the Group")
	}
}
