// SPDX-License-Identifier: Apache-2.0

package leaderelection

import "context"

// Phase is the state of an elector. LeaderElector.step decides which one follows.
type Phase string

// The phases.
const (
	Idle Phase = "idle" // not running
	// a candidate: waits until the lease is free, and tries to take it
	Acquiring Phase = "acquiring"
	Leading   Phase = "leading"   // holds and renews the lease while OnStartedLeading works
	Finishing Phase = "finishing" // was stopped: renews the lease until the work has returned
	// the work has returned; the lease is released if ReleaseOnCancel is set
	Releasing Phase = "releasing"
	// has lost the lease: calls OnStoppedLeading, then waits for the work
	Stopping Phase = "stopping"
)

// Transition is one decision of the state machine.
type Transition struct {
	From, To Phase
	Err      error // the reason; nil if nothing went wrong
}

// step does the work of one phase and decides which phase follows. All decisions of the elector are
// made here; the helpers only report what happened.
//
//	Acquiring ──▶ Leading ──▶ Finishing ──▶ Releasing ──▶ Idle
//	    ▲            │            │             ▲
//	    │            └─── lost ───┤             │
//	 Rejoin                       ▼             │
//	    └───────────────────── Stopping ────────┘
//
// When Run is stopped, Acquiring is followed by Idle, or by Releasing if the lease may name this
// candidate. With AbandonWork, Leading is followed by Releasing.
func (e *LeaderElector) step(ctx context.Context, now Phase) Transition {
	switch now {
	case Acquiring:
		err := e.acquire(ctx)
		switch {
		case err == nil:
			e.begin(ctx)
			return Transition{To: Leading}
		case e.inDoubt, e.observed.HolderIdentity == e.config.Lock.Identity():
			// ctx ended a write that the server may have done all the same, or a wait for the lease
			// that this candidate held before
			return Transition{To: Releasing, Err: err}
		}
		return Transition{To: Idle, Err: err}

	case Leading:
		err := e.renewUntil(ctx)
		switch {
		case err != nil:
			return Transition{To: Stopping, Err: err}
		case e.abandons:
			return Transition{To: Releasing}
		}
		return Transition{To: Finishing}

	case Finishing:
		if err := e.renewUntil(e.term.working); err != nil {
			return Transition{To: Stopping, Err: err}
		}
		return Transition{To: Releasing}

	case Stopping:
		e.leave()
		if !e.abandons {
			<-e.term.working.Done()
		}
		if e.config.Rejoin && ctx.Err() == nil {
			return Transition{To: Acquiring}
		}
		return Transition{To: Releasing}

	case Releasing:
		var err error
		if e.config.ReleaseOnCancel {
			err = e.release(ctx)
		}
		e.leave()
		return Transition{To: Idle, Err: err}
	}
	return Transition{To: Idle}
}
