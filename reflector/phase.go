// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Phase is what a reflector is doing. Reflector.decide says how one follows another.
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

	handle bool // Err ends the round, and the WatchErrorHandler gets it
}

// step does the work of one phase, after a wait if pause says so, and decides what follows.
func (r *Reflector) step(ctx context.Context, now Phase, pause bool) Transition {
	var err error
	if pause {
		err = r.pause(ctx)
	}
	if err == nil {
		r.setPhase(now)
		err = r.work(ctx, now)
	}
	next := Transition{To: Idle}
	if ctx.Err() == nil {
		next = r.decide(now, err)
	}
	next.From = now
	return next
}

// work does what one phase is for, and returns how that ended.
func (r *Reflector) work(ctx context.Context, now Phase) error {
	switch now {
	case Streaming:
		return r.streamList(ctx)
	case Listing:
		return r.list(ctx)
	case Opening:
		return r.openWatch(ctx)
	case Watching:
		return r.followWatch(ctx)
	}
	return nil
}

// decide returns what follows a phase that ended with err. All decisions of the reflector are here:
// the helpers report what happened.
//
//	Starting ──▶ Streaming ──▶ Watching ◀──▶ Opening
//	    │            │                          ▲
//	    └────────────┴──▶ Listing ──────────────┘
//
// From each a failure may lead back to Starting, after a wait.
func (r *Reflector) decide(now Phase, err error) Transition {
	if isApplyError(err) { // its cause may look like an answer of the server, and is not
		r.backoff.changeFailed()
		return Transition{To: Starting, Pause: true, Err: err, handle: true}
	}
	switch now {
	case Starting:
		if r.useWatchList {
			return Transition{To: Streaming}
		}
		return Transition{To: Listing}

	case Streaming:
		return r.decideStreaming(err)

	case Listing:
		switch {
		case err == nil:
			return Transition{To: Opening}
		case isUnavailable(err) && !r.unavailable:
			r.unavailable = true // ask for whatever is newest instead
			return Transition{To: Listing, Err: err}
		}
		return Transition{To: Starting, Pause: true, Err: err, handle: true}

	case Opening:
		switch {
		case err == nil:
			return Transition{To: Watching}
		case isBusy(err): // all clients list when it is back; what we have is still good
			return Transition{To: Opening, Pause: true, Err: err}
		case errors.Is(err, ErrWatchSilent):
			return Transition{To: Opening, Err: err}
		case isExpired(err):
			r.backoff.serverForgot()
		}
		return Transition{To: Starting, Pause: true, Err: err, handle: true}

	case Watching:
		return r.decideWatching(err)
	}
	return Transition{To: Idle}
}

func (r *Reflector) decideStreaming(err error) Transition {
	switch {
	case err == nil:
		r.unfinished = 0
		return Transition{To: Watching}
	case isBusy(err):
		return Transition{To: Streaming, Pause: true, Err: err}
	case isUnavailable(err) && !r.unavailable:
		r.unavailable = true
		return Transition{To: Streaming, Err: err}
	case errors.Is(err, ErrStreamUnfinished):
		r.unfinished++
	}
	if errors.Is(err, errClosedEarly) && r.unfinished < maxUnfinished {
		return Transition{To: Streaming, Pause: true, Err: err} // once may be the network
	}
	if isRefusal(err) || r.unfinished >= maxUnfinished {
		r.useWatchList = false // it would fail again
	}
	return Transition{To: Listing, Err: err}
}

func (r *Reflector) decideWatching(err error) Transition {
	lostBefore := r.round.lost
	r.round.lost = isDecodingError(err)
	switch {
	case err == nil, errors.Is(err, ErrWatchSilent): // servers end watches; the next one resumes
		return Transition{To: Opening, Err: err}
	case r.round.lost && !lostBefore: // an event that cannot be decoded would come again
		return Transition{To: Opening, Err: err}
	case r.round.internalErrors.retry(err, r.opts.Clock.Now()):
		return Transition{To: Opening, Err: err}
	case apierrors.IsTooManyRequests(err), errors.Is(err, errNothingNew):
		return Transition{To: Opening, Pause: true, Err: err}
	case isExpired(err): // a LIST that may not be older than what we have closes the gap
		r.backoff.serverForgot()
	}
	return Transition{To: Starting, Pause: true, Err: err}
}
