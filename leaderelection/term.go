// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// pulse is how often a leader looks at the wall clock. The monotonic clock stands still while a machine is suspended; only a
// look at the other one tells.
const pulse = time.Second

// moment is one moment on the two clocks of a machine: one that runs evenly but may stop with the machine, and one that is
// set by people and by time servers.
type moment struct {
	mono time.Time
	wall time.Time
}

// term is one time of leading.
//
//	T1  it is valid while less than hold has passed since the newest renewal was sent, by the monotonic clock, and less
//	    than a lease by the wall clock
//	T2  once it is over it stays over: it is not renewed then, whatever the server says
//	T3  when it is over, the work's context is done
//	T4  the holder of the lease's record was this candidate in every answer of the term
//
// Whoever asks a term looks at the clocks himself, so that nobody is told yes after a pause before a timer has fired.
type term struct {
	hold  time.Duration
	lease time.Duration
	now   func() moment

	ctx     context.Context // the work's
	cancel  context.CancelCauseFunc
	working context.Context // done when the work has returned
	lasting context.Context // done when the term is over
	finish  context.CancelFunc

	mu      sync.Mutex
	renewed moment // when the newest renewal was sent
	token   FencingToken
	err     error // why the term is over
	alarm   *time.Timer
}

// newTerm returns a term that w has won. It watches over its own end until it is over.
func newTerm(ctx context.Context, config *LeaderElectionConfig, now func() moment, w win) *term {
	t := &term{
		hold: config.hold(), lease: config.LeaseDuration, now: now, renewed: w.sent, token: w.token,
	}
	t.lasting, t.finish = context.WithCancel(context.WithoutCancel(ctx))
	led, cancel := context.WithCancelCause(ctx)
	t.ctx, t.cancel = ledContext{led, t}, cancel
	t.mu.Lock()
	defer t.mu.Unlock()
	t.alarm = time.AfterFunc(min(pulse, time.Until(t.renewed.mono.Add(t.hold))), t.watch)
	return t
}

// start runs the work.
func (t *term) start(ctx context.Context, work func(context.Context)) {
	working, returned := context.WithCancel(context.WithoutCancel(ctx))
	t.working = working
	go func() {
		defer returned()
		work(t.ctx)
	}()
}

// valid reports whether the candidate still leads, and ends the term if it does not.
func (t *term) valid() bool {
	_, ok := t.left()
	return ok
}

// left returns how long the term will last without another renewal.
func (t *term) left() (time.Duration, bool) {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.leftLocked(now)
}

func (t *term) leftLocked(now moment) (time.Duration, bool) {
	if t.err != nil {
		return 0, false
	}
	mono, wall := now.mono.Sub(t.renewed.mono), now.wall.Sub(t.renewed.wall)
	switch {
	case mono >= t.hold:
		t.endLocked(fmt.Errorf("%w: lease was not renewed for %v", ErrLost, mono))
	case wall >= t.lease:
		t.endLocked(fmt.Errorf("%w: the wall clock went on by %v since the last renewal", ErrLost, wall))
	default:
		return t.hold - mono, true
	}
	return 0, false
}

// renew notes a write that the server has accepted, and returns how much time was left. It fails if there was none.
func (t *term) renew(sent moment, token FencingToken) (slack time.Duration, err error) {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	slack, ok := t.leftLocked(now)
	if !ok {
		return 0, t.err
	}
	t.renewed, t.token = sent, token
	return slack, nil
}

// watch ends the term when its time has passed.
func (t *term) watch() {
	left, ok := t.left()
	if !ok {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.alarm.Reset(min(pulse, left))
	}
}

// end ends the term, if it is not over yet, and returns why it is.
func (t *term) end(cause error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.endLocked(cause)
	}
	return t.err
}

func (t *term) endLocked(cause error) {
	t.err = cause
	t.alarm.Stop()
	t.cancel(cause) // before anybody learns that the term is over
	t.finish()
}

// ledContext is the context of the work. Who asks it for its Err, and not one made from it, looks at the clocks.
type ledContext struct {
	context.Context
	term *term
}

func (c ledContext) Err() error {
	c.term.valid()
	return c.Context.Err()
}

func (c ledContext) Value(key any) any {
	if key == (termKey{}) {
		return c.term
	}
	return c.Context.Value(key)
}

type termKey struct{}
