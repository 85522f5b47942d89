// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"sync"

	"example.com/informerstack/internal/termcontext"
)

// shift is one period of work: from the start of the workers until the context of Run ends or,
// under a lease, the term.
//
//	S1  no reconcile begins after stop is closed: at the end of the period, with Options.Drain at
//	    the end of the grace period
//	S2  when the term is over, ctx is done, whatever the grace period, and no reconcile begins
//	S3  S2 also holds after a pause of the process, before a timer has fired: stopped, ended and the
//	    contexts of reconciles ask the term, which reads the clocks
type shift struct {
	run  context.Context // of Run
	term context.Context // done when the leader's term is over; without a term it never is
	ctx  context.Context // of the reconciles
	end  context.CancelFunc

	stop   <-chan struct{} // closed when no further key may be begun
	taking context.Context // its end releases workers that wait for a key
	leave  context.CancelFunc

	workers sync.WaitGroup
}

// newShift returns the shift of a controller that was given led to work under: the context of Run,
// or the one that Options.Lead made.
//
// The grace period is granted within the term that led carries. If Options.Lead is a function that
// puts no term into its context, nothing is known of the lease beyond the end of led, so there is
// no grace.
func (c *Controller[K]) newShift(run, led context.Context) *shift {
	s := &shift{run: run, term: termcontext.Lasting(led), stop: led.Done()}
	parent := led
	if c.opts.GracePeriod > 0 && (c.opts.Lead == nil || termcontext.Of(led) != termcontext.Of(run)) {
		parent = s.term
	}
	s.ctx, s.end = context.WithCancel(parent)
	if c.opts.Drain {
		s.stop = s.ctx.Done()
	}
	s.taking, s.leave = context.WithCancel(context.Background())
	return s
}

// stopped reports whether no further key may be begun.
func (s *shift) stopped() bool {
	select {
	case <-s.stop:
		return true
	default:
		return s.term.Err() != nil
	}
}

// ended reports whether the reconciles have lost their context.
func (s *shift) ended() bool { return s.term.Err() != nil || s.ctx.Err() != nil }
