// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"
)

// Status is the state of a reflector at one moment.
type Status struct {
	Phase           Phase
	ResourceVersion string // that the store has reached; "" before the first list

	// LastContact is when the server last sent something: the answer to a LIST or WATCH request,
	// also an API error such as 403 or 429, or an event, a bookmark or an error in a watch. A
	// connection that fails or ends is not contact.
	LastContact time.Time
	// CurrentAsOf is a time up to which the store is complete: it has been given everything that
	// the collection held then, as the server that answered knew it. A list sets it to the time at
	// which its request was sent, a streaming list to the time at which its last initial event
	// arrived, and each change or bookmark of the watch that follows to the time at which that
	// arrived. A list in pages that shows the state of the last resourceVersion sets it to the time
	// at which that was reached. Opening a watch, its end, and a list that is still being received
	// do not move it.
	//
	// A watch that is opened later than this time first sends its backlog, the events since. Each
	// of them counts as older than its arrival by that delay, until a bookmark or a pause between
	// two events ends the backlog. Only a bookmark is proof: if the server or the network stalls in
	// the middle of the backlog (for 100 ms, or for a second before the first event), CurrentAsOf
	// is too late until the rest has arrived.
	//
	// It is the zero time before the first list, and from the moment at which the store is known to
	// be old until the next list has replaced its content. A store is known to be old after a 410
	// (Gone, Expired) to a watch, an ApplyError, or a Relist.
	CurrentAsOf time.Time

	LastEvent    time.Time // when the last change arrived by a watch; initial events do not count
	LastBookmark time.Time // when the last bookmark arrived: the server says that nothing changed

	// LastError is the newest failure, kept when it is over. If its text is longer than 1 KiB, it
	// is a short copy.
	LastError           error
	LastErrorTime       time.Time
	ConsecutiveFailures int // since a watch was last open
	Failures            int // since New
	Fallbacks           int // streaming lists that were given up for a LIST, since New
}

// Status returns a snapshot. It is cheap, and safe to call at any time from any goroutine.
func (r *Reflector) Status() Status {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.status
}

// LastSyncResourceVersion returns the resourceVersion up to which the Store has everything, or ""
// before the first list. It is safe to call from any goroutine; the Store may be ahead of it by the
// change that is being applied.
func (r *Reflector) LastSyncResourceVersion() string { return r.Status().ResourceVersion }

func (r *Reflector) setPhase(p Phase) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Phase = p
}

// noteContact notes that the server sent something. It may be called from any goroutine.
func (r *Reflector) noteContact(now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.LastContact = now
}

// noteAnswer notes contact if err, the result of a request, is nil or an error that the server
// sent.
func (r *Reflector) noteAnswer(err error) {
	if err == nil || isAnswer(err) {
		r.noteContact(r.opts.Clock.Now())
	}
}

// advance records that the Store has taken everything up to resourceVersion, which was the newest
// at asOf. e is the event that moved it, or the zero event for a list.
func (r *Reflector) advance(resourceVersion string, asOf time.Time, e event) {
	if metric := r.opts.Metrics.LastResourceVersion; metric != nil {
		digits := resourceVersion[max(0, len(resourceVersion)-15):]
		if number, err := strconv.ParseFloat(digits, 64); err == nil {
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
	r.asOf = asOf
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

// note makes a transition visible: in Status, in the log, to the observer.
func (r *Reflector) note(ctx context.Context, t Transition) {
	now, short := r.opts.Clock.Now(), bounded(t.Err)
	old := isApplyError(t.Err) || isExpired(t.Err) && (t.From == Opening || t.From == Watching)
	r.mu.Lock()
	switch {
	case t.Err != nil:
		r.status.LastError, r.status.LastErrorTime = short, now
		r.status.ConsecutiveFailures++
		r.status.Failures++
	case t.To == Watching:
		r.status.ConsecutiveFailures = 0
	}
	if old {
		r.status.CurrentAsOf = time.Time{} // R6
	}
	if t.From == Streaming && t.To == Listing {
		r.status.Fallbacks++
	}
	r.mu.Unlock()

	switch { // the first two texts are client-go's, for which people search
	case t.From == Starting && t.To != Idle:
		r.log(ctx).V(3).Info("Listing and watching")
	case t.From == Listing && t.To == Opening, t.From == Streaming && t.To == Watching:
		r.log(ctx).V(2).Info("Caches populated")
	case t.Err != nil && !t.isHandled():
		r.logFailure(ctx, t)
	}
	r.noteOutage(t)
	if r.opts.Observe != nil {
		r.opts.Observe(t)
	}
}

// noteOutage notes whether a request failed. A server that restarts refuses its clients for a
// while, so every failure counts, with these exceptions: a 410 and a resourceVersion that is too
// large are answers of a healthy server; a busy server (429) should get no further requests; after
// a streaming list that failed, the LIST decides; a request that a stop ended has no result.
func (r *Reflector) noteOutage(t Transition) {
	isRequest := t.From == Listing || t.From == Opening || t.From == Streaming && t.To != Listing
	if isRequest && t.To != Idle && !isApplyError(t.Err) && !apierrors.IsTooManyRequests(t.Err) {
		r.member.Note(t.Err != nil && !isUnavailable(t.Err))
	}
}

// logFailure logs what happened and what follows.
func (r *Reflector) logFailure(ctx context.Context, t Transition) {
	logger := r.log(ctx).WithValues("err", bounded(t.Err))
	switch {
	case t.From == Streaming && t.To == Listing:
		if r.fellBack {
			logger = logger.V(4)
		}
		r.fellBack = true
		if r.useWatchList {
			logger.Info("Streaming list failed, trying LIST; the next relist streams again")
		} else {
			logger.Info("Server does not support streaming lists, using LIST from now on")
		}
	case t.To == Streaming && t.Pause:
		logger.V(4).Info("Streaming list failed, streaming again after a wait")
	case t.To == Streaming, t.To == Listing:
		logger.V(4).Info("Server cannot serve the resourceVersion, requesting the newest state")
	case errors.Is(t.Err, ErrWatchSilent):
		logger.Info("Watch is silent past its timeout, opening another")
	case t.From == Opening:
		logger.V(2).Info("Server is not available, opening the watch again after a wait")
	case t.To == Opening && t.Pause:
		logger.V(2).Info("Watch ended, opening another after a wait")
	case t.To == Opening:
		logger.V(2).Info("Watch ended, opening another at once")
	case isExpired(t.Err):
		logger.V(4).Info("Watch expired, listing again after a wait")
	default:
		logger.Info("Watch ended with an error, listing again after a wait")
	}
}
