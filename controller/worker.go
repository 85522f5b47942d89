// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"runtime/debug"
	"time"
)

var (
	// errReconcileTimeout is the cause of a context that Options.ReconcileTimeout ended.
	errReconcileTimeout = errors.New("the reconcile timeout has passed")
	// errGoexit is the value of the PanicError of a reconcile that ended its goroutine.
	errGoexit = errors.New("reconcile called runtime.Goexit")
)

// runWorker handles keys until the queue is shut down and empty, or the shift ends. If reconcile
// ends the worker's goroutine, another goroutine takes its place.
func (c *Controller[K]) runWorker(s *shift) {
	finished := false
	defer func() {
		if !finished {
			s.workers.Go(func() { c.runWorker(s) })
		}
	}()
	for c.processNextWorkItem(s) {
	}
	finished = true
}

// processNextWorkItem handles one key: Get, reconcile, settle, Done. It returns false when there
// will be no more keys.
func (c *Controller[K]) processNextWorkItem(s *shift) (more bool) {
	var key K
	var shutdown bool
	if c.opts.Lead == nil {
		key, shutdown = c.queue.Get()
	} else {
		key, shutdown = c.extended.GetWithContext(s.grace)
	}
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	if s.period.Err() != nil || s.term.Err() != nil {
		c.queue.Add(key) // for the next term, if there is one
		return false
	}

	r := &reconcileContext[K]{
		Context: s.grace, controller: c, shift: s, key: key, began: time.Since(s.began),
	}
	if c.opts.ReconcileTimeout > 0 {
		var cancel context.CancelFunc
		r.Context, cancel = context.WithTimeoutCause(
			s.grace, c.opts.ReconcileTimeout, errReconcileTimeout)
		defer cancel()
	}
	if !c.keys.begin(r) {
		return true // a dead letter
	}
	if c.opts.Metrics.Begin != nil {
		c.opts.Metrics.Begin()
	}
	more = true // even if the call panics
	defer c.settle(r)
	r.result, r.err = c.reconcile(r, key)
	r.returned = true
	return true
}

// settle acts on the result of a call of reconcile, as the table at ReconcileFunc says. It is
// deferred: the call may also panic, or end its goroutine.
func (c *Controller[K]) settle(r *reconcileContext[K]) {
	report := Report{
		TimedOut: c.opts.ReconcileTimeout > 0 &&
			errors.Is(context.Cause(r.Context), errReconcileTimeout),
		Panicked: !r.returned,
	}
	if !r.returned {
		value := recover()
		if value != nil && c.opts.Panic == CrashOnPanic {
			panic(value)
		}
		if value == nil {
			value = errGoexit
		}
		r.err = &PanicError{Value: value, Stack: debug.Stack()}
	}
	after := r.result.RequeueAfter
	refused := r.refusal.Swap(settled) == isRefused
	switch {
	case refused && r.returned:
		report.Outcome = OutcomeRequeueAfter
		c.keys.cut(r, report.Outcome)
	case r.err != nil:
		report.Outcome = OutcomeError
		c.settleFailure(r, &report)
	case after > 0:
		report.Outcome = OutcomeRequeueAfter
		c.keys.finish(r, report.Outcome)
		c.queue.Forget(r.key)
		c.addAfter(r.key, after)
	default:
		report.Outcome = OutcomeSuccess
		c.keys.finish(r, report.Outcome)
		c.queue.Forget(r.key)
	}
	if r.shift.logger.V(5).Enabled() {
		r.logger().V(5).Info("Reconciled", "outcome", report.Outcome, "requeueAfter", after)
	}
	if c.opts.Metrics.End != nil {
		report.Took = time.Since(r.since())
		c.opts.Metrics.End(report)
	}
}

// settleFailure decides between a retry and giving up. If the object is gone, or the shift has
// ended, it does neither.
func (c *Controller[K]) settleFailure(r *reconcileContext[K], report *Report) {
	err, logger := r.err, r.logger()
	report.Terminal = errors.Is(err, TerminalError(nil))
	if after := r.result.RequeueAfter; after > 0 {
		logger.Info("Reconcile returned an error and a RequeueAfter, which is ignored",
			"requeueAfter", after)
	}
	if panicked, ok := errors.AsType[*PanicError](err); ok {
		logger.Error(err, "Reconcile panicked", "stack", string(panicked.Stack))
	}
	switch {
	case r.shift.ended():
		c.keys.cut(r, OutcomeError)
		c.queue.Add(r.key) // for the next term, if there is one
		logger.Error(err, "Reconcile was cut short by the stop")
		return
	case c.opts.Exists != nil && !c.opts.Exists(r.key):
		c.keys.finish(r, OutcomeError)
		c.queue.Forget(r.key)
		logger.Error(err, "Reconcile failed for something that is gone, not trying again")
		return
	}

	giveUp := Reason("")
	switch {
	case report.Terminal:
		giveUp = Terminal
	case report.Panicked && c.opts.Panic == DeadLetterOnPanic:
		giveUp = Panicked
	}
	letter, evicted := c.keys.fail(r, err, giveUp, time.Now())
	switch {
	case letter != nil:
		report.DeadLetter = letter.Reason
		if letter.Reason != Terminal {
			c.queue.Forget(r.key)
		}
		logger.Error(err, "Reconcile failed, giving up until something changes",
			"reason", letter.Reason, "attempts", letter.Attempts)
	case giveUp == Terminal:
		logger.Error(err, "Reconcile failed terminally, but a change has come in since")
	default:
		c.addFailed(r.key, err)
		logger.Error(err, "Reconcile failed, trying again later")
	}
	if evicted != nil {
		report.Evicted = true
		c.queue.Forget(evicted.Key)
		logger.Info("Dropped the oldest dead letter, there are too many",
			"dropped", evicted.Key, "error", evicted.Last.Err)
	}
}
