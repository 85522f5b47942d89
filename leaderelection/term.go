// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"example.com/informerstack/internal/helpers/termcontext"
)

// suspendCheckPeriod is how often a leader checks whether its machine was suspended. Timers do not
// count the time of a suspension.
const suspendCheckPeriod = time.Second

// term is one period of leading.
//
//	T1  it is valid while less than hold has passed since the newest renewal was sent; time while
//	    the process was stopped or the machine suspended counts. hold is less than LeaseDuration
//	T2  once it is over it stays over: it is not renewed then, whatever the server says
//	T3  lasting, and each context made from it, is done before anything else shows that the term
//	    is over
//	T4  the holder of the lease's record was this candidate in every answer of the term
//
// Each query of a term reads the clocks, so that after a pause the answer is right before a timer
// has fired.
type term struct {
	config *LeaderElectionConfig
	now    func() clockReading

	ctx     context.Context // of the work: done when it is asked to stop or the term is over
	lasting context.Context // done when the term is over; ctx carries it
	working context.Context // done when the work has returned
	over    context.Context // what lasting is made of: Err does not read the clocks
	cancel  context.CancelCauseFunc

	mu      sync.Mutex
	renewed clockReading  // when the newest renewal was sent
	hold    time.Duration // from then on: T1
	token   FencingToken
	err     error // why the term is over
	timer   *time.Timer
}

// newTerm returns a term that w has won. A timer ends it when its time has passed.
func newTerm(
	ctx context.Context, config *LeaderElectionConfig, now func() clockReading, w win,
) *term {
	t := &term{
		config: config, now: now, renewed: w.sent, hold: config.hold(w.took), token: w.token,
	}
	over, endTerm := context.WithCancelCause(termcontext.Lasting(ctx))
	led, stopWork := context.WithCancelCause(ctx)
	t.over, t.lasting = over, termContext{over, t}
	t.ctx = termContext{termcontext.With(led, t.lasting), t}
	t.cancel = func(cause error) {
		endTerm(cause)
		stopWork(cause)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.timer = time.AfterFunc(min(suspendCheckPeriod, time.Until(w.sent.mono.Add(t.hold))), t.watch)
	return t
}

// start runs the work. If the term is over by the time the work begins, its context is done.
func (t *term) start(ctx context.Context, work func(context.Context)) {
	working, returned := context.WithCancel(context.WithoutCancel(ctx))
	t.working = working
	go func() {
		defer returned()
		t.valid()
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

func (t *term) leftLocked(now clockReading) (time.Duration, bool) {
	passed := now.since(t.renewed)
	switch {
	case t.over.Err() != nil: // T2; or Run was called in a term that is over
		t.endLocked(context.Cause(t.over))
	case passed >= t.hold:
		cause := fmt.Errorf("%w: lease was not renewed for %v", ErrLost, passed)
		if asleep := passed - now.mono.Sub(t.renewed.mono); asleep > 0 {
			cause = fmt.Errorf("%w, during which the machine was suspended for %v", cause, asleep)
		}
		t.endLocked(cause)
	default:
		return t.hold - passed, true
	}
	return 0, false
}

// renew notes a write that the server has accepted, and returns how much time was left. It fails if
// the term was over.
func (t *term) renew(sent clockReading, token FencingToken) (slack time.Duration, err error) {
	now := t.now()
	t.mu.Lock()
	defer t.mu.Unlock()
	slack, ok := t.leftLocked(now)
	if !ok {
		return 0, t.err
	}
	t.renewed, t.hold, t.token = sent, t.config.hold(now.since(sent)), token
	return slack, nil
}

// lastRenewal returns when the newest renewal was sent, or the zero time if the lease was lost.
func (t *term) lastRenewal() clockReading {
	t.mu.Lock()
	defer t.mu.Unlock()
	if errors.Is(t.err, ErrLost) {
		return clockReading{}
	}
	return t.renewed
}

// named returns the token of the term, whether or not it is over.
func (t *term) named() FencingToken {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.token
}

// watch ends the term when its time has passed.
func (t *term) watch() {
	left, _ := t.left()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.timer.Reset(min(suspendCheckPeriod, left))
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
	t.timer.Stop()
	t.cancel(cause)
}

// termContext is a context that ends with a term or before it. Its Err reads the clocks; that of a
// context made from it does not.
type termContext struct {
	context.Context
	term *term
}

// Err implements context.Context.
func (c termContext) Err() error {
	c.term.valid()
	return c.Context.Err()
}

// termOf returns the term of the work that ctx belongs to, or nil.
func termOf(ctx context.Context) *term {
	c, _ := termcontext.Of(ctx).(termContext)
	return c.term
}

// TermContext returns a context with the values of ctx that is done when the term that ctx belongs
// to is over, because the lease was lost, which makes context.Cause an ErrLost, or is about to be
// released. Work that was asked to stop uses it for what it must still do, such as a last write:
// the context that it was started with is done by then.
//
// If Run abandons the work, the term is over as soon as its context is done. If ctx has no term,
// TermContext returns ctx.
func TermContext(ctx context.Context) context.Context {
	if termOf(ctx) == nil {
		return ctx
	}
	return termcontext.Lasting(ctx)
}
