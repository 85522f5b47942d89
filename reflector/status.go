// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"example.com/informerstack/internal/freshness"
	"example.com/informerstack/internal/helpers/listwatch"
	"example.com/informerstack/internal/helpers/objects"
)

// Status is the state of a reflector at one moment.
type Status struct {
	Phase           Phase
	ResourceVersion string // that the Store, perhaps a queue, has taken; "" before the first list

	// LastContact is when the reflector last took something that the server sent: the answer to a
	// LIST or WATCH request, also an API error such as 403 or 429, or an event, a bookmark or an
	// error in a watch. A connection that fails or ends is not contact.
	LastContact time.Time
	// CurrentAsOf is a time: the store has been given everything that the collection held then, as
	// the server that answered knew it. A list, even a streaming one, sets it to the time of its
	// request. A list in pages that shows the state of the last resourceVersion sets it to the time
	// when that version was reached. Opening a watch, its end, and a list that is still being
	// received do not move it.
	//
	// Events and bookmarks of a watch do not move it at once: they may have waited on a slow link,
	// in a decoder, for a slow transform or Store, or while the process was stopped, and more
	// may wait behind them. A pause shows that nothing waits: it moves CurrentAsOf to the time at
	// which the first event after the last pause was taken. A watch of package wire pauses if no
	// byte arrives for a quarter of a second, and in addition for as long as a link of 16 KiB per
	// second needs for the largest event so far, up to one second. Any other watch pauses if it
	// brings nothing for two seconds. With a network, or a decoder of such a watch, that pauses
	// for as long between two events, CurrentAsOf may be too late.
	//
	// If it is five seconds old while events do not pause, the reflector asks the server for the
	// newest resourceVersion, with a LIST of one object, and waits for the watch to reach that. It
	// asks every six to eight seconds, and only if Status was called within the last minute.
	//
	// It is the zero time before the first list. It is also zero from the moment that the store is
	// known to be old until the next list has replaced the store's content. A store is known to be
	// old after a 410 (Gone, Expired) to a watch, an ApplyError, or a Relist.
	CurrentAsOf time.Time

	LastEvent    time.Time // when the last event but bookmarks and initial events was taken
	LastBookmark time.Time // when the last bookmark was: the server says that nothing changed

	// Waiting says what the reflector waits for if the Phase is AwaitingTurn; otherwise nil.
	Waiting error

	// TransformingSince is when the present call of Options.Transform began; otherwise zero.
	TransformingSince time.Time

	// LastError is the newest failure, which is kept when it is over. An event of another type or
	// kind, which is skipped, is a failure too. If its text is longer than 1 KiB, this is a short
	// copy.
	LastError           error
	LastErrorTime       time.Time
	ConsecutiveFailures int // since a watch was last open
	Failures            int // since New
	Fallbacks           int // streaming lists that were given up for a LIST, since New
}

// Status returns a snapshot. It is cheap, and safe to call at any time from any goroutine.
func (r *Reflector) Status() Status {
	handedOver, now := r.handedOver(), r.opts.Clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readAt = now
	status := r.status
	status.ResourceVersion, status.CurrentAsOf = handedOver.ResourceVersion, handedOver.AsOf
	if contact := r.contact.Load(); contact != nil {
		status.LastContact = *contact
	}
	status.LastEvent, status.LastBookmark = handedOver.Change, handedOver.Bookmark
	if since := r.transformingSince.Load(); since != 0 {
		status.TransformingSince = time.Unix(0, since)
	}
	if status.Phase == AwaitingTurn {
		status.Waiting = r.opts.Starts.Why()
	}
	return status
}

// LastSyncResourceVersion returns the last resourceVersion that the Store has reached, or "" before
// the first list. It is safe to call from any goroutine. The Store may be ahead of it by the change
// that is being applied.
func (r *Reflector) LastSyncResourceVersion() string {
	return r.handedOver().ResourceVersion
}

// handedOver is what was handed over; nothing if r was not made by New.
func (r *Reflector) handedOver() freshness.HandedOver {
	if r.freshness == nil {
		return freshness.HandedOver{}
	}
	return r.freshness.HandedOver()
}

// reportVersion calls the metric, which is not nil.
func (r *Reflector) reportVersion(resourceVersion string) {
	if number, ok := objects.VersionNumber(resourceVersion); ok {
		r.opts.Metrics.LastResourceVersion(number)
	}
}

func (r *Reflector) setPhase(p Phase) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Phase = p
}

// noteFailure notes that an event was skipped. It counts as a failure until another watch opens.
func (r *Reflector) noteFailure(err error, now time.Time) {
	short := bounded(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.noteFailureLocked(short, now)
}

func (r *Reflector) noteFailureLocked(short error, now time.Time) {
	r.status.LastError, r.status.LastErrorTime = short, now
	r.status.ConsecutiveFailures++
	r.status.Failures++
}

// noteAnswer notes contact if err, the result of a request, is nil or an error that the server
// sent.
func (r *Reflector) noteAnswer(err error) {
	if err == nil || isAnswer(err) {
		now := r.opts.Clock.Now()
		r.contact.Store(&now)
	}
}

// note makes a transition visible: in Status, in the log, to the observer.
func (r *Reflector) note(ctx context.Context, t Transition) {
	now, short := r.opts.Clock.Now(), bounded(t.Err)
	old := isApplyError(t.Err) || isExpired(t.Err) && (t.From == Opening || t.From == Watching)
	r.mu.Lock()
	switch {
	case t.Err != nil:
		r.noteFailureLocked(short, now)
	case t.To == Watching && !r.isUnreachable():
		r.status.ConsecutiveFailures = 0
	}
	if t.From == Streaming && t.To == Listing {
		r.status.Fallbacks++
	}
	r.mu.Unlock()
	if old {
		r.freshness.Lose() // R6
	}

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

// noteOutage notes what a transition says about the server. An error that is followed by a wait is
// the server's failure or the reflector's own trouble, see isOutage; watches that bring nothing are
// neither. After a streaming list that failed, the LIST decides. A request that a stop ended has no
// result. The server has sent what the program cannot apply, but a Relist or a Resync may fail
// while nothing was sent.
func (r *Reflector) noteOutage(t Transition) {
	if t.To == Idle || errors.Is(t.Err, errBehind) {
		return
	}
	isRequest := t.From == Listing || t.From == Opening || t.From == Streaming
	applyErr, isApply := errors.AsType[*ApplyError](t.Err)
	switch {
	case isApply && (applyErr.Verb == "process" || applyErr.Verb == "resync"):
	case isApply:
		r.member.Answered()
	case t.Pause && isOutage(t.Err):
		seconds, _ := apierrors.SuggestsClientDelay(t.Err)
		r.member.Failed(time.Duration(seconds) * time.Second)
	case t.Pause && t.Err != nil:
		if r.member.Refused() {
			r.backoff.restart() // a server that starts refuses for a while
		}
	case isRequest && (t.Err == nil || isUnavailable(t.Err)) && !r.isUnanswered():
		r.member.Answered()
	}
}

// isUnanswered reports that the server was not asked, or did not answer, for the open watch; or for
// the list, if no watch is open.
func (r *Reflector) isUnanswered() bool {
	if r.round.open == nil {
		return r.round.inferred
	}
	return listwatch.IsUnanswered(r.round.open.Interface)
}

// isUnreachable reports that the open watch is one that rest made without the server.
func (r *Reflector) isUnreachable() bool {
	return r.round.open != nil && listwatch.IsUnreachable(r.round.open.Interface)
}

// logFailure logs what happened and what follows.
func (r *Reflector) logFailure(ctx context.Context, t Transition) {
	logger := r.log(ctx).WithValues("err", bounded(t.Err))
	switch {
	case errors.Is(t.Err, listwatch.ErrNotSent): // the list may be known all the same
		logger.V(4).Info("No streaming list was requested, trying LIST")
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
