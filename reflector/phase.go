// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Phase is the present work of a reflector. Reflector.decide chooses the next phase.
type Phase string

// The phases.
const (
	Idle      Phase = "idle"      // not running
	Starting  Phase = "starting"  // a round begins: everything must be fetched
	Streaming Phase = "streaming" // fetching it through a watch that sends it first (WatchList)
	Listing   Phase = "listing"   // fetching it through LIST
	Opening   Phase = "opening"   // opening a WATCH at the last resourceVersion
	Watching  Phase = "watching"  // following that watch
)

// Waits before one of the phases; only Status shows them.
const (
	BackingOff   Phase = "backing off"        // after a failure, or before another round
	AwaitingTurn Phase = "waiting for a turn" // of Options.Starts
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
			err = r.inTurn(ctx, now, r.streamList)
		case Listing:
			err = r.inTurn(ctx, now, r.list)
		case Opening:
			err = r.openWatch(ctx)
		case Watching:
			err = r.followWatch(ctx)
		}
	}
	if ctx.Err() != nil {
		return Transition{From: now, To: Idle}
	}
	d := r.decide(now, err)
	r.learn(d.facts)
	return Transition{From: now, To: d.next, Pause: d.pause, Err: err}
}

// decision is what follows a phase: the next one, after a wait if pause says so, and what the end
// of the phase has shown.
type decision struct {
	next  Phase
	pause bool
	facts
}

// facts are what the end of a phase has shown about the server.
type facts struct {
	unavailable  bool // it cannot serve the last resourceVersion
	serverForgot bool // it answers, and has forgotten the last resourceVersion
	complete     bool // a streaming list was complete
	unfinished   bool // a streaming list ended too early
	noStreams    bool // a streaming list would fail again
	lost         bool // a watch was lost
}

// learn keeps facts for the phases that follow.
func (r *Reflector) learn(f facts) {
	r.unavailable = r.unavailable || f.unavailable
	r.useWatchList = r.useWatchList && !f.noStreams
	r.round.lost = r.round.lost || f.lost
	switch {
	case f.complete:
		r.unfinished = 0
	case f.unfinished:
		r.unfinished++
	case f.serverForgot:
		r.backoff.restart()
	}
}

// decide returns what follows a phase that ended with err. All decisions of the reflector are here:
// the helpers report what happened, and learn keeps what it shows.
//
//	Starting ──▶ Streaming ──▶ Watching ◀──▶ Opening
//	    │            │                          ▲
//	    └────────────┴──▶ Listing ──────────────┘
//
// From each a failure may lead back to Starting, after a wait.
func (r *Reflector) decide(now Phase, err error) decision {
	again := decision{next: Starting, pause: true}
	if isApplyError(err) { // its cause may look like an answer of the server, and is not
		return again
	}
	switch now {
	case Starting:
		if r.useWatchList {
			return decision{next: Streaming}
		}
		return decision{next: Listing}

	case Streaming:
		return r.decideStreaming(err)

	case Listing:
		switch {
		case err == nil:
			return decision{next: Opening}
		case isUnavailable(err) && !r.unavailable: // ask for whatever is newest instead
			return decision{next: Listing, facts: facts{unavailable: true}}
		}

	case Opening:
		switch {
		case err == nil:
			return decision{next: Watching}
		case isBusy(err): // all clients list when it is back; what we have is still good
			return decision{next: Opening, pause: true}
		case errors.Is(err, ErrWatchSilent):
			return decision{next: Opening}
		}
		again.serverForgot = isExpired(err)

	case Watching:
		return r.decideWatching(err)
	}
	return again
}

func (r *Reflector) decideStreaming(err error) decision {
	switch {
	case err == nil:
		return decision{next: Watching, facts: facts{complete: true}}
	case isBusy(err):
		return decision{next: Streaming, pause: true}
	case isUnavailable(err) && !r.unavailable:
		return decision{next: Streaming, facts: facts{unavailable: true}}
	}
	unfinished, count := errors.Is(err, ErrStreamUnfinished), r.unfinished
	if unfinished {
		count++
	}
	if errors.Is(err, errClosedEarly) && count < maxUnfinished { // once may be the network
		return decision{next: Streaming, pause: true, facts: facts{unfinished: true}}
	}
	return decision{next: Listing, facts: facts{
		unfinished: unfinished, noStreams: isRefusal(err) || count >= maxUnfinished,
	}}
}

func (r *Reflector) decideWatching(err error) decision {
	retryLimit := r.opts.MaxInternalErrorRetryDuration
	switch {
	case err == nil, errors.Is(err, ErrWatchSilent): // servers end watches; the next one resumes
		return decision{next: Opening}
	case isDecodingError(err) && !r.round.lost: // such an event would be sent again
		return decision{next: Opening, facts: facts{lost: true}}
	case r.round.internalErrors.retry(err, r.opts.Clock.Now(), retryLimit): // which counts them
		return decision{next: Opening}
	case apierrors.IsTooManyRequests(err), errors.Is(err, errNothingNew):
		return decision{next: Opening, pause: true}
	}
	// A LIST that may not be older than what we have closes the gap behind a 410.
	return decision{next: Starting, pause: true, facts: facts{serverForgot: isExpired(err)}}
}
