// SPDX-License-Identifier: Apache-2.0

package leaderelection

import "context"

// Phase is what an elector is doing. LeaderElector.step says how one follows another.
type Phase string

// The phases.
const (
	Idle      Phase = "idle"      // not running
	Acquiring Phase = "acquiring" // a candidate: waits for the lease to be free, and tries to take it
	Leading   Phase = "leading"   // holds the lease, which is renewed; OnStartedLeading is at work
	Finishing Phase = "finishing" // was told to end, and so was the work; the lease is renewed until the work has returned
	Releasing Phase = "releasing" // the work is over; the lease is given back, if ReleaseOnCancel says so
	Stopping  Phase = "stopping"  // has lost the lease; OnStoppedLeading is called, then the work is waited for
)

// Transition is one decision of the state machine.
type Transition struct {
	From, To Phase
	Err      error // what led to it; nil if all is well
}

// step does one phase's work and decides what comes next. All that the elector decides, it decides here: the helpers report
// what happened.
//
//	Acquiring ──▶ Leading ──▶ Finishing ──▶ Releasing ──▶ Idle
//	    ▲            │            │             ▲
//	    │            └─── lost ───┤             │
//	 Rejoin                       ▼             │
//	    └───────────────────── Stopping ────────┘
//
// Who is told to end while it waits goes from Acquiring to Idle, and with AbandonWork from Leading to Releasing.
func (e *LeaderElector) step(ctx context.Context, now Phase) Transition {
	switch now {
	case Acquiring:
		err := e.acquire(ctx)
		switch {
		case err == nil:
			e.begin(ctx)
			return Transition{To: Leading}
		case e.inDoubt: // ctx ended a write that the server may have done nevertheless
			return Transition{To: Releasing, Err: err}
		}
		return Transition{To: Idle, Err: err}

	case Leading:
		err := e.renewUntil(ctx)
		switch {
		case err != nil:
			return Transition{To: Stopping, Err: err}
		case e.config.AbandonWork:
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
		if !e.config.AbandonWork {
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
