// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Phase is what a reflector is doing. Reflector.step says how one follows another.
type Phase string

// The phases. BackingOff stands between two others; only Status shows it.
const (
	Idle       Phase = "idle"        // not running
	Starting   Phase = "starting"    // a round begins: everything must be fetched
	Streaming  Phase = "streaming"   // fetching it through a watch that sends the present state first (WatchList)
	Listing    Phase = "listing"     // fetching it through LIST
	Opening    Phase = "opening"     // everything is fetched; a WATCH is being opened where the last answer ended
	Watching   Phase = "watching"    // following that watch
	BackingOff Phase = "backing off" // waiting before the next phase
)

// Transition is one decision of the state machine.
type Transition struct {
	From, To Phase
	Pause    bool  // whether the reflector backs off between the two
	Err      error // what led to it; nil if all is well

	handle bool // Err ends the round and is ListAndWatch's result, so that the WatchErrorHandler gets it
}

// step does one phase's work and decides what comes next. All that the reflector decides, it decides here: the helpers
// report what happened.
//
//	Starting ──▶ Streaming ──▶ Watching ◀──▶ Opening
//	    │            │                          ▲
//	    └────────────┴──▶ Listing ──────────────┘
//
// From each a failure may lead back to Starting, after a pause.
func (r *Reflector) step(ctx context.Context, now Phase) Transition {
	switch now {
	case Starting:
		if r.useWatchList {
			return Transition{To: Streaming}
		}
		return Transition{To: Listing}

	case Streaming:
		err := r.streamList(ctx)
		switch {
		case err == nil:
			r.unfinished = 0
			return Transition{To: Watching}
		case isApplyError(err):
			return Transition{To: Starting, Pause: true, Err: err, handle: true}
		case isBusy(err):
			return Transition{To: Streaming, Pause: true, Err: err}
		case isUnavailable(err) && !r.unavailable:
			r.unavailable = true // ask for whatever is newest instead
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

	case Listing:
		err := r.list(ctx)
		switch {
		case err == nil:
			return Transition{To: Opening}
		case isUnavailable(err) && !isApplyError(err) && !r.unavailable:
			r.unavailable = true
			return Transition{To: Listing, Err: err}
		}
		return Transition{To: Starting, Pause: true, Err: err, handle: true}

	case Opening:
		err := r.openWatch(ctx)
		switch {
		case err == nil:
			return Transition{To: Watching}
		case isBusy(err) && !isApplyError(err): // all will want to list when it is back; what we have is still good
			return Transition{To: Opening, Pause: true, Err: err}
		case errors.Is(err, ErrWatchSilent):
			return Transition{To: Opening, Err: err}
		}
		return Transition{To: Starting, Pause: true, Err: err, handle: true}

	case Watching:
		err := r.followWatch(ctx)
		switch {
		case isApplyError(err):
			return Transition{To: Starting, Pause: true, Err: err, handle: true}
		case err == nil, errors.Is(err, ErrWatchSilent), r.internalErrors.retry(err, r.clock.Now()):
			return Transition{To: Opening, Err: err} // servers end watches; the next goes on where this one ended
		case apierrors.IsTooManyRequests(err):
			return Transition{To: Opening, Pause: true, Err: err}
		}
		// A 410 too: a LIST that may not be older than what we have is what closes the gap.
		return Transition{To: Starting, Pause: true, Err: err}
	}
	return Transition{To: Idle}
}
