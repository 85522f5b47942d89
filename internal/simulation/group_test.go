// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"errors"
	"slices"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/reflector"
	"example.com/informerstack/reflector/outage"
)

const (
	// minSilence is the shortest silence after which a Group lets a member try.
	minSilence = 3 * time.Second
	// wakePause is the longest time for which no success wakes a member that one has woken.
	wakePause = 30 * time.Second
)

// sharedGroup is the Group of all processes of a script that say "shared": their informers are
// those of one program, with a network of their own each.
type sharedGroup struct {
	outage.Group
	mu        sync.Mutex
	waits     []time.Time // when members began to wait
	answers   []time.Time // when the server answered members after a failure
	successes []time.Time // of these, when it was certainly not available before
}

// waiting is what the waits of a process's reflector have shown.
type waiting struct {
	group *sharedGroup // nil: it waits on its own

	mu         sync.Mutex
	begun, due time.Time   // of the last wait; due is the end of its backoff
	ended      bool        // a request followed it
	early      []time.Time // requests before the end of a wait, which were not checked yet
	failed     bool        // the last request was not answered with success
	outage     bool        // certainly because the server was not available
	woken      time.Time   // when a wait last ended because another member reached the server
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
		w.group.waits = append(w.group.waits, w.begun)
	}
}

// requests notes a request.
func (w *waiting) requests() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now := time.Now(); !w.ended && now.Before(w.due) {
		w.early = append(w.early, now)
	}
	w.ended = true
}

// note notes the result of a request.
func (w *waiting) note(t reflector.Transition) {
	isRequest := t.From == reflector.Listing || t.From == reflector.Opening ||
		t.From == reflector.Streaming && t.To != reflector.Listing
	if !isRequest || t.To == reflector.Idle {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	failed, wasOutage := w.failed, w.outage
	isTooOld := apierrors.IsResourceExpired(t.Err) || apierrors.IsGone(t.Err)
	w.failed = t.Err != nil && !isTooOld && !apierrors.HasStatusCause(t.Err,
		metav1.CauseTypeResourceVersionTooLarge)
	w.outage = errors.Is(t.Err, syscall.ECONNREFUSED) || apierrors.IsInternalError(t.Err) ||
		apierrors.IsServiceUnavailable(t.Err)
	if w.group == nil || !failed || w.failed {
		return
	}
	w.group.mu.Lock()
	defer w.group.mu.Unlock()
	w.group.answers = append(w.group.answers, time.Now())
	if wasOutage {
		w.group.successes = append(w.group.successes, time.Now())
	}
}

// check checks that the reflector waits no longer than its backoff, nor than until another member
// of its Group has reached the server, and shorter only for a reason.
func (w *waiting) check(p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var successes []time.Time
	if w.group != nil {
		w.group.mu.Lock()
		defer w.group.mu.Unlock()
		successes = w.group.successes
	}
	for _, at := range w.early {
		w.checkEarly(p, at)
	}
	w.early = nil
	if w.ended || p.informer.Health().Reflector.Phase != reflector.BackingOff {
		return
	}
	if time.Now().After(w.due) {
		p.violate(7, "%s waits longer than its backoff", p.name)
	}
	isLater := func(at time.Time) bool { return at.After(w.begun) }
	canWake := w.outage && w.begun.Sub(w.woken) >= wakePause
	if canWake && slices.ContainsFunc(successes, isLater) {
		p.violate(7, "%s waits, and another member of its Group has reached the server", p.name)
	}
}

// checkEarly checks that a request before the end of a wait had a reason.
func (w *waiting) checkEarly(p *process, at time.Time) {
	isRecent := func(wait time.Time) bool {
		return wait.After(at.Add(-minSilence)) && wait.Before(at)
	}
	switch {
	case p.refused: // a lost change ends a wait
	case w.group != nil && slices.ContainsFunc(w.group.answers, at.Equal):
		w.woken = at
		p.cover("group wakes after an answer")
	case w.group != nil && !slices.ContainsFunc(w.group.waits, isRecent):
		p.cover("group lets one try")
	default:
		p.violate(7, "%s ends its wait early", p.name)
	}
}

// checkEmpty checks that no wait is left in the Group: the two that one success wakes are new ones.
func (g *sharedGroup) checkEmpty(w *world) {
	members := make([]outage.Member, 3)
	for i := range members {
		members[i].Group = &g.Group
		members[i].Note(true)
	}
	first, leaveFirst := members[0].Wait(time.Hour)
	second, leaveSecond := members[1].Wait(time.Hour)
	members[2].Note(false)
	if len(first)+len(second) != 2 {
		w.violate(8, "all processes have ended, and one waits in the Group")
	}
	leaveFirst()
	leaveSecond()
}
