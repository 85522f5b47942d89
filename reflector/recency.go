// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"example.com/informerstack/internal/async"
)

// recency is what a reflector knows about the age of its store.
//
// A watch does not say when an event arrived. It may have waited in the client, while a transform
// or the store was slow, or while the process was stopped. And the first events of a watch may be
// older than their arrival: they are the backlog, what happened before the watch was opened. So
// there are three ways in which the store becomes more current:
//
//   - The reflector waits for the next event: everything that had arrived was taken. The time of
//     that wait counts, but not the time of its work.
//   - Nothing arrives for a while, after some events: all that arrived was taken. If the events
//     kept the reflector busy for less than a second, the last of them was not late.
//   - The watch has reached the resourceVersion that the server named in answer to a question.
//
// A change, a bookmark or a pause then moves Status.CurrentAsOf:
//
//	A1  upTo is not later than now, and everything that arrived by then was taken
//	A2  backlog is true until it is known that the backlog was sent; asOf stays where it is
type recency struct {
	asOf      time.Time // of the last resourceVersion; Status.CurrentAsOf may be zero
	upTo      time.Time
	backlog   bool
	busySince time.Time // when the first event after the last pause was taken; zero in a pause

	waitingSince time.Time // when the reflector last began to wait
	question     question
}

const (
	// readPause is a pause that shows that the client has no event that was not taken: it would
	// have been decoded by then.
	readPause = 100 * time.Millisecond
	// backlogPause is a pause that shows that a server has sent the backlog of a watch, which it
	// sends in one go. It is longer, because a lost packet interrupts that for some time.
	backlogPause = time.Second
	// In a wait of less than minWait, an event that has already arrived may be decoded. In a wait
	// of more than maxWait, the process may have been stopped.
	minWait = time.Millisecond
	maxWait = time.Second
)

// opened notes that a watch was requested at now. An answer to an earlier question says nothing
// about its backlog; and the watch may never reach it, if the server was wrong.
func (c *recency) opened(now time.Time) {
	c.question.answer, c.question.named = nil, namedVersion{}
	c.busySince, c.upTo, c.backlog = now, now, true
	if now.Sub(c.asOf) < backlogPause { // the backlog is at most that old
		c.upTo, c.backlog = c.asOf, false
	}
}

// took notes that an event was taken at now, after a wait.
func (c *recency) took(now time.Time) {
	if waited := now.Sub(c.waitingSince); waited >= minWait && waited < maxWait {
		c.upTo = c.upTo.Add(waited)
	}
	if c.busySince.IsZero() {
		c.busySince = now
	}
}

// pause returns how long nothing must arrive to be a pause.
func (c *recency) pause() time.Duration {
	if c.backlog {
		return backlogPause
	}
	return readPause
}

// paused notes that nothing has arrived during a wait, and reports whether that is a pause. last is
// when the last event was taken. If the wait was longer than expected, the process may have been
// stopped, and the events that arrived meanwhile are not yet decoded.
func (c *recency) paused(now, last time.Time) bool {
	waited := now.Sub(c.waitingSince)
	if c.busySince.IsZero() || waited < c.pause() || waited >= 2*c.pause() {
		return c.busySince.IsZero()
	}
	known := last
	if last.Sub(c.busySince) >= backlogPause {
		known = c.busySince // the last event may have waited: the connection may be dead since
	}
	if known.After(c.upTo) {
		c.upTo = known
	}
	c.busySince, c.backlog = time.Time{}, false
	return true
}

// current returns the time up to which the store is complete once it has taken the last event.
func (c *recency) current() time.Time {
	if c.backlog {
		return c.asOf
	}
	return c.upTo
}

// notePause is called when nothing has arrived for some time. It reports whether that is a pause.
// The resourceVersion does not move, so the Store, which may be slow, is not called.
func (r *Reflector) notePause(now time.Time) bool {
	c, w := &r.recency, r.round.open
	if !c.paused(now, w.lastEvent) {
		return false
	}
	if r.round.fetched && w.pastInitial && !w.lastEvent.IsZero() && c.upTo.After(c.asOf) {
		r.mu.Lock()
		r.moveCurrentAsOfLocked(c.upTo)
		r.mu.Unlock()
	}
	return true
}

// question asks the server for its newest resourceVersion, by a LIST of one object, if events never
// pause. When the watch has reached the answer, the store is complete up to the time of the
// question.
//
// It costs the server one small request, so it is sent only if the status of the reflector was read
// within the last minute and is older than necessary, and at most every questionPeriod.
type question struct {
	answer  <-chan async.Outcome[namedVersion] // nil if no request is under way
	named   namedVersion                       // that the watch has not reached yet
	next    time.Time                          // no question before
	useless bool                               // the server does not understand it
}

// namedVersion is the newest resourceVersion of the server at some time after asOf.
type namedVersion struct {
	resourceVersion string
	asOf            time.Time
}

const (
	questionBusy    = 2 * time.Second  // how long events have not paused
	questionAge     = 5 * time.Second  // of the store
	questionPeriod  = 10 * time.Second // between two questions
	questionRetry   = time.Minute      // after a failed one
	questionTimeout = 30 * time.Second
	questionReader  = time.Minute
)

var errNoLimit = errors.New("server ignores the limit of a LIST")

// ask sends a question if that is useful.
func (r *Reflector) ask(ctx context.Context) {
	now, c := r.opts.Clock.Now(), &r.recency
	q := &c.question
	switch {
	case !r.round.fetched, now.Sub(c.busySince) < questionBusy, now.Sub(c.asOf) < questionAge:
		return // not necessary, or soon shown by a pause
	case q.useless, q.answer != nil, q.named.resourceVersion != "", now.Before(q.next):
		return
	case !r.isRead(now):
		return
	}
	q.next = now.Add(questionPeriod)
	q.answer = async.Call(func() (namedVersion, error) {
		ctx, cancel := context.WithTimeout(ctx, questionTimeout)
		defer cancel()
		return r.newestVersion(ctx)
	})
}

// newestVersion lists one object. It runs in a goroutine of its own.
func (r *Reflector) newestVersion(ctx context.Context) (namedVersion, error) {
	asOf, count := r.opts.Clock.Now(), 0
	one := func(runtime.Object) error {
		if count++; count > 1 {
			return errNoLimit
		}
		return nil
	}
	m, err := r.fetchPage(ctx, metav1.ListOptions{Limit: 1}, one)
	return namedVersion{m.ResourceVersion, asOf}, err
}

// reached notes that the watch has reached resourceVersion, which may be the answer to a question.
func (c *recency) reached(resourceVersion string, now time.Time) {
	q := &c.question
	select {
	case o := <-q.answer:
		named, err := o.Unpack()
		q.answer, q.named = nil, named
		if err != nil {
			q.named, q.next = namedVersion{}, now.Add(questionRetry)
			q.useless = errors.Is(err, errNoLimit)
		}
	default:
	}
	if q.named.resourceVersion == "" {
		return
	}
	order, err := resourceversion.CompareResourceVersion(resourceVersion, q.named.resourceVersion)
	switch {
	case err != nil:
		q.useless, q.named = true, namedVersion{}
	case order >= 0:
		c.backlog = false
		if q.named.asOf.After(c.upTo) {
			c.upTo = q.named.asOf
		}
		q.named = namedVersion{}
	}
}
