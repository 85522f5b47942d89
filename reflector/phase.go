// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Phase is the present work of a reflector. Reflector.decide chooses the next phase.
type Phase string

// The phases. BackingOff is a wait before one of the others; only Status shows it.
const (
	Idle       Phase = "idle"        // not running
	Starting   Phase = "starting"    // a round begins: everything must be fetched
	Streaming  Phase = "streaming"   // fetching it through a watch that sends it first (WatchList)
	Listing    Phase = "listing"     // fetching it through LIST
	Opening    Phase = "opening"     // opening a WATCH at the last resourceVersion
	Watching   Phase = "watching"    // following that watch
	BackingOff Phase = "backing off" // waiting before the next phase
)

// Transition is one decision of the state machine.
type Transition struct {
	From, To Phase
	Pause    bool  // whether the reflector backs off between the two
	Err      error // what led to it; nil if all is well
}

// isHandled reports that the WatchErrorHandler gets Err: an error that ends the round, except that
// of a watch that was open.
func (t Transition) isHandled() bool {
	return t.To == Starting && (t.From != Watching || isApplyError(t.Err))
}

// step does the work of one phase, after a wait if pause says so, and decides what follows.
func (r *Reflector) step(ctx context.Context, now Phase, pause bool) Transition {
	var err error
	if pause {
		err = r.pause(ctx)
	}
	if err == nil {
		r.setPhase(now)
		switch now {
		case Streaming:
			err = r.streamList(ctx)
		case Listing:
			err = r.list(ctx)
		case Opening:
			err = r.openWatch(ctx)
		case Watching:
			err = r.followWatch(ctx)
		}
	}
	if ctx.Err() != nil {
		return Transition{From: now, To: Idle}
	}
	next := Transition{From: now, Err: err}
	next.To, next.Pause = r.decide(now, err)
	return next
}

// decide returns the phase that follows one that ended with err, and whether the reflector waits
// before it. All decisions of the reflector are here: the helpers report what happened.
//
//	Starting ──▶ Streaming ──▶ Watching ◀──▶ Opening
//	    │            │                          ▲
//	    └────────────┴──▶ Listing ──────────────┘
//
// From each a failure may lead back to Starting, after a wait.
func (r *Reflector) decide(now Phase, err error) (next Phase, pause bool) {
	if isApplyError(err) { // its cause may look like an answer of the server, and is not
		return Starting, true
	}
	switch now {
	case Starting:
		if r.useWatchList {
			return Streaming, false
		}
		return Listing, false

	case Streaming:
		return r.decideStreaming(err)

	case Listing:
		switch {
		case err == nil:
			return Opening, false
		case isUnavailable(err) && !r.unavailable:
			r.unavailable = true // ask for whatever is newest instead
			return Listing, false
		}

	case Opening:
		switch {
		case err == nil:
			return Watching, false
		case isBusy(err): // all clients list when it is back; what we have is still good
			return Opening, true
		case errors.Is(err, ErrWatchSilent):
			return Opening, false
		case isExpired(err):
			r.backoff.restart()
		}

	case Watching:
		return r.decideWatching(err)
	}
	return Starting, true
}

func (r *Reflector) decideStreaming(err error) (next Phase, pause bool) {
	switch {
	case err == nil:
		r.unfinished = 0
		return Watching, false
	case isBusy(err):
		return Streaming, true
	case isUnavailable(err) && !r.unavailable:
		r.unavailable = true
		return Streaming, false
	case errors.Is(err, ErrStreamUnfinished):
		r.unfinished++
	}
	if errors.Is(err, errClosedEarly) && r.unfinished < maxUnfinished {
		return Streaming, true // once may be the network
	}
	if isRefusal(err) || r.unfinished >= maxUnfinished {
		r.useWatchList = false // it would fail again
	}
	return Listing, false
}

func (r *Reflector) decideWatching(err error) (next Phase, pause bool) {
	lost, lostBefore := isDecodingError(err), r.round.lost
	r.round.lost = lost || lostBefore
	retryLimit := r.opts.MaxInternalErrorRetryDuration
	switch {
	case err == nil, errors.Is(err, ErrWatchSilent): // servers end watches; the next one resumes
		return Opening, false
	case lost && !lostBefore: // an event that cannot be decoded would be sent again
		return Opening, false
	case r.round.internalErrors.retry(err, r.opts.Clock.Now(), retryLimit):
		return Opening, false
	case apierrors.IsTooManyRequests(err), errors.Is(err, errNothingNew):
		return Opening, true
	case isExpired(err): // a LIST that may not be older than what we have closes the gap
		r.backoff.restart()
	}
	return Starting, true
}
