// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/reflector"
	"example.com/informerstack/reflector/outage"
)

// The laws of a Group: a member tries early as a scout, some time after its last request, or within
// a second of news, before that time only once until it has recovered.
const (
	recovery   = 5 * time.Second // without a failure
	scoutPace  = 2 * time.Second
	newsWindow = time.Second
)

// sharedGroup is the Group of all processes of a script that say "shared": their informers are
// those of one program, with a network of their own each.
type sharedGroup struct {
	outage.Group
	mu   sync.Mutex
	news []time.Time // when the server answered members after a failure
}

// waiting is what the waits of a process's reflector have shown.
type waiting struct {
	group *sharedGroup // nil: it waits on its own

	mu         sync.Mutex
	begun, due time.Time     // of the last wait; due is the end of its backoff
	notBefore  time.Time     // the server asked for that
	ended      bool          // a request followed the wait
	early      []earlyEnding // which were not checked yet
	failed     bool          // since the last answer
	wellSince  time.Time     // the first answer after a failure
	woken      bool          // early, since it recovered last
}

// earlyEnding is a request before the end of a wait.
type earlyEnding struct {
	at     time.Time
	waited time.Duration
	again  bool // another one was as early since it recovered last
}

func (w *world) newWaiting(s setup) *waiting {
	if s.group == "shared" {
		return &waiting{group: &w.group}
	}
	return &waiting{}
}

// begin notes that a wait of d begins.
func (w *waiting) begin(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.begun, w.due, w.ended = time.Now(), time.Now().Add(d), false
	if w.group != nil && w.due.Before(w.notBefore) {
		w.due = w.notBefore
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
		w.woken = w.woken || waited < scoutPace
	}
	w.ended = true
}

// note notes what a transition says about the server, as a member of a Group does: every error that
// is followed by a wait is a failure.
func (w *waiting) note(t reflector.Transition) {
	applyErr, isApply := errors.AsType[*reflector.ApplyError](t.Err)
	isLate := isApply && (applyErr.Verb == "process" || applyErr.Verb == "resync")
	if t.To == reflector.Idle || isLate {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	isRequest := t.From == reflector.Listing || t.From == reflector.Opening ||
		t.From == reflector.Streaming
	_, isStatus := t.Err.(apierrors.APIStatus)
	isAnswer := t.Err == nil || t.Pause || isStatus || apierrors.HasStatusCause(t.Err,
		metav1.CauseTypeResourceVersionTooLarge)
	if w.group != nil && w.failed && isAnswer && (isRequest || t.Pause) {
		w.group.mu.Lock()
		w.group.news = append(w.group.news, now)
		w.group.mu.Unlock()
	}
	seconds, _ := apierrors.SuggestsClientDelay(t.Err)
	if apierrors.HasStatusCause(t.Err, metav1.CauseTypeResourceVersionTooLarge) {
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
	w.failed = fails || w.failed && !isRequest
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
		p.violate(7, "%s waits longer than its backoff", p.name)
	}
}

// checkEarly checks that a request before the end of a wait had a reason.
func (w *waiting) checkEarly(p *process, e earlyEnding) {
	switch {
	case p.refused: // a lost change ends a wait
	case w.group != nil && e.waited >= scoutPace:
		p.cover("group ends a wait at the pace of scouts")
	case w.group != nil && !e.again && w.group.hadNews(e.at):
		p.cover("group ends a wait with news")
	default:
		p.violate(7, "%s ends its wait early, at %v", p.name, e.at.Sub(p.begun))
	}
}

// hadNews reports that there were news within the last second.
func (g *sharedGroup) hadNews(at time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, news := range g.news {
		if age := at.Sub(news); age >= 0 && age <= newsWindow {
			return true
		}
	}
	return false
}

// checkEmpty checks that no wait is left in the Group: even a member that has failed for long is
// its scout.
func (g *sharedGroup) checkEmpty(w *world) {
	m := outage.Member{Group: &g.Group}
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
