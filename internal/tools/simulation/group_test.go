// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"sync"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/reflector"
	"example.com/informerstack/reflector/outage"
)

// groupRound is the longest time until each waiting member of a Group has had its turn.
const groupRound = 20 * time.Second

// sharedGroup is the Group of all processes of a script that say "shared": their informers are
// those of one program, with a network of their own each.
type sharedGroup struct {
	outage.Group
	mu      sync.Mutex
	waits   []*waiting  // the members that have waited
	answers []time.Time // when the server answered members after a failure
}

// waiting is what the waits of a process's reflector have shown.
type waiting struct {
	group *sharedGroup // nil: it waits on its own

	mu         sync.Mutex
	begun, due time.Time   // of the last wait; due is the end of its backoff
	ended      bool        // a request followed it
	early      []time.Time // requests before the end of a wait, which were not checked yet
	failed     bool        // since the last watch that was opened again at once
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
	if w.group != nil {
		w.group.mu.Lock()
		defer w.group.mu.Unlock()
		if !slices.Contains(w.group.waits, w) {
			w.group.waits = append(w.group.waits, w)
		}
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
		w.early = append(w.early, now)
	}
	w.ended = true
}

// note notes what a transition says about the server, as a member of a Group does: every error that
// is followed by a wait is a failure.
func (w *waiting) note(t reflector.Transition) {
	if t.To == reflector.Idle {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	isRequest := t.From == reflector.Listing || t.From == reflector.Opening ||
		t.From == reflector.Streaming
	isAnswer := t.Err == nil || apierrors.HasStatusCause(t.Err,
		metav1.CauseTypeResourceVersionTooLarge)
	if w.group != nil && w.failed && isRequest && isAnswer {
		w.group.mu.Lock()
		w.group.answers = append(w.group.answers, time.Now())
		w.group.mu.Unlock()
	}
	if t.From == reflector.Watching && !t.Pause {
		w.failed = false
	}
	w.failed = w.failed || t.Err != nil && t.Pause
}

// check checks that the reflector waits no longer than its backoff, and shorter only for a reason.
// In a Group it waits for its turn, which comes after a round, or after its backoff if that is
// longer and other members go first.
func (w *waiting) check(p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, at := range w.early {
		w.checkEarly(p, at)
	}
	w.early = nil
	if w.ended || p.informer.Health().Reflector.Phase != reflector.BackingOff {
		return
	}
	due := w.due
	if w.group != nil {
		if turn := w.begun.Add(groupRound); due.Before(turn) {
			due = turn
		}
		due = due.Add(groupRound)
	}
	if time.Now().After(due) {
		p.violate(7, "%s waits longer than its backoff", p.name)
	}
}

// checkEarly checks that a request before the end of a wait had a reason.
func (w *waiting) checkEarly(p *process, at time.Time) {
	switch {
	case p.refused: // a lost change ends a wait
	case w.group != nil && w.group.hasTurns(w, at):
		p.cover("group lets members try in turn")
	default:
		p.violate(7, "%s ends its wait early, at %v", p.name, at.Sub(p.begun))
	}
}

// hasTurns reports that another member has waited, or that the server has answered one, so that the
// members do not wait on their own.
func (g *sharedGroup) hasTurns(w *waiting, at time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	isOther := func(other *waiting) bool { return other != w }
	isBefore := func(answer time.Time) bool { return !answer.After(at) }
	return slices.ContainsFunc(g.waits, isOther) || slices.ContainsFunc(g.answers, isBefore)
}

// checkEmpty checks that no wait is left in the Group: a new member waits on its own.
func (g *sharedGroup) checkEmpty(w *world) {
	m := outage.Member{Group: &g.Group}
	m.Failed(0)
	wake, leave := m.Wait(time.Hour)
	defer leave()
	time.Sleep(time.Minute)
	synctest.Wait()
	if len(wake) > 0 {
		w.violate(8, "all processes have ended, and one waits in the Group")
	}
}
