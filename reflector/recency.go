// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/helpers/async"
	"example.com/informerstack/internal/helpers/objects"
)

// recency is what a reflector knows about the age of its store.
//
// A watch does not say when an event arrived. It may have waited in the client, while a transform
// or the store was slow, or while the process was stopped. And the first events of a watch may be
// older than their arrival: they are the backlog, what happened before the watch was opened. So
// there are three ways in which the store becomes more current:
//
//   - The reflector waits for the next event: everything that had arrived was taken. The time of
//     that wait counts, but not the time of its work. A watch of package wire also knows when it
//     was waiting for the server, and not decoding: then only that time counts.
//   - Nothing arrives for a while, after some events: all that arrived was taken. If the events
//     kept the reflector busy for less than a second, the last of them was not late.
//   - The watch has reached the resourceVersion that the server named in answer to a question.
//
// A change, a bookmark or a pause then moves Status.CurrentAsOf:
//
//	A1  upTo is not later than now, and everything that arrived by then was taken
//	A2  pause is backlogPause until it is known that the backlog was sent, then readPause; a watch
//	    does not move asOf before
type recency struct {
	asOf      time.Time // of the last resourceVersion; Status.CurrentAsOf may be zero
	upTo      time.Time
	pause     time.Duration // how long nothing must arrive to be a pause
	busySince time.Time     // when the first event after the last pause was taken; zero in a pause

	waitingSince time.Time     // when the reflector last began to wait
	idle         time.Duration // of the open watch then
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
	c.busySince, c.upTo, c.pause = now, now, backlogPause
	if now.Sub(c.asOf) < backlogPause { // the backlog is at most that old
		c.upTo, c.pause = c.asOf, readPause
	}
}

// took notes that e was taken at now, after a wait. If events do not pause, it asks the server for
// the newest version, and takes the answer later.
func (r *Reflector) took(ctx context.Context, e watch.Event, now time.Time) {
	c := &r.recency
	waited := now.Sub(c.waitingSince)
	if idle := r.round.open.idle() - c.idle; idle >= minWait && waited < maxWait {
		c.upTo = c.upTo.Add(min(idle, waited))
	}
	if c.busySince.IsZero() {
		c.busySince = now
	}
	select {
	case o := <-c.question.answer:
		c.question.answered(o, now)
	default:
	}
	switch busy, age := now.Sub(c.busySince), now.Sub(c.asOf); {
	case e.Type == watch.Error:
		if isDecodingError(apierrors.FromObject(e.Object)) {
			return // it is the client's, not the server's
		}
	case r.round.fetched && busy >= questionBusy && age >= questionAge:
		r.ask(ctx, now)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.LastContact = now
}

// paused is called when nothing has arrived for some time. It reports whether that is a pause. If
// the wait was longer than expected, the process may have been stopped, and the events that arrived
// meanwhile are not yet decoded.
//
// The resourceVersion does not move, so the Store, which may be slow, is not called.
func (r *Reflector) paused(now time.Time) bool {
	c, w := &r.recency, r.round.open
	waited, idle := now.Sub(c.waitingSince), w.idle()-c.idle
	if c.busySince.IsZero() || waited < c.pause || waited >= 2*c.pause || idle < c.pause-minWait {
		return c.busySince.IsZero()
	}
	known := w.lastEvent
	if w.lastEvent.Sub(c.busySince) >= backlogPause {
		known = c.busySince // the last event may have waited: the connection may be dead since
	}
	if known.After(c.upTo) {
		c.upTo = known
	}
	c.busySince, c.pause = time.Time{}, readPause
	if r.round.fetched && w.pastInitial && !w.lastEvent.IsZero() && c.upTo.After(c.asOf) {
		c.asOf = c.upTo
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.relists) == 0 { // otherwise the store is known to be old
			r.status.CurrentAsOf = c.asOf
		}
	}
	return true
}

// advance records that the Store has taken everything up to resourceVersion. e is the event that
// moved it, or the zero event for a list.
func (r *Reflector) advance(resourceVersion string, e event) {
	c := &r.recency
	if c.question.named.resourceVersion != "" {
		c.compare(resourceVersion)
	}
	asOf := c.upTo
	if c.pause == backlogPause {
		asOf = c.asOf
	}
	if metric := r.opts.Metrics.LastResourceVersion; metric != nil {
		if number, ok := objects.VersionNumber(resourceVersion); ok {
			metric(number)
		}
	}
	r.mu.Lock()
	r.status.ResourceVersion = resourceVersion
	if len(r.relists) == 0 { // otherwise the store is known to be old
		if asOf.Before(r.status.CurrentAsOf) {
			asOf = r.status.CurrentAsOf
		}
		r.status.CurrentAsOf = asOf
	}
	c.asOf = asOf
	switch e.Type {
	case "":
	case watch.Bookmark:
		r.status.LastBookmark = e.received
	default:
		r.status.LastEvent = e.received
	}
	r.mu.Unlock()
	if r.opts.Progress != nil {
		r.opts.Progress(resourceVersion, asOf)
	}
}

// question asks the server for its newest resourceVersion, by a LIST of one object, if events never
// pause. When the watch has reached the answer, the store is complete up to the time of the
// question.
//
// It costs the server one small request, so it is sent only if the status of the reflector was read
// within the last minute and is older than necessary, and at most every questionPeriod. While the
// watch has not reached an answer, the next question follows after questionRetry.
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
	questionRetry   = time.Minute      // after a failure, or while the answer is not reached
	questionTimeout = 30 * time.Second
	questionReader  = time.Minute
)

var errNoLimit = errors.New("server ignores the limit of a LIST")

// ask sends a question if one is due and the status is read.
func (r *Reflector) ask(ctx context.Context, now time.Time) {
	q := &r.recency.question
	waiting := q.named.resourceVersion != "" && now.Sub(q.named.asOf) < questionRetry
	if q.useless || q.answer != nil || waiting || now.Before(q.next) {
		return
	}
	r.mu.Lock()
	isRead := now.Sub(r.readAt) < questionReader
	r.mu.Unlock()
	if !isRead {
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

// answered takes an answer. Until the watch has reached one, the lower of two counts: the watch may
// never reach the other, for example that of a server that was restored later.
func (q *question) answered(o async.Outcome[namedVersion], now time.Time) {
	q.answer = nil
	named, err := o.Unpack()
	if err != nil {
		q.next = now.Add(questionRetry)
		q.useless = errors.Is(err, errNoLimit)
		return
	}
	order, err := resourceversion.CompareResourceVersion(
		named.resourceVersion, q.named.resourceVersion)
	if err != nil || order < 0 { // there is no other, or it is higher
		q.named = named
	}
}

// compare compares resourceVersion, which the watch has reached, with the version that was named.
func (c *recency) compare(resourceVersion string) {
	q := &c.question
	order, err := resourceversion.CompareResourceVersion(resourceVersion, q.named.resourceVersion)
	switch {
	case err != nil:
		q.useless, q.named = true, namedVersion{}
	case order >= 0:
		c.pause = readPause
		if q.named.asOf.After(c.upTo) {
			c.upTo = q.named.asOf
		}
		q.named = namedVersion{}
	}
}
