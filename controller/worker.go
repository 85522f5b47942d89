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
func (c *Controller[K]) runWorker(s *shift, worker int32) {
	finished := false
	defer func() {
		if !finished {
			s.workers.Go(func() { c.runWorker(s, worker) })
		}
	}()
	for c.processNextWorkItem(s, worker) {
	}
	finished = true
}

// processNextWorkItem handles one key: Get, reconcile, settle, Done. It returns false when there
// will be no more keys.
func (c *Controller[K]) processNextWorkItem(s *shift, worker int32) bool {
	key, shutdown := c.get(s.taking)
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	if s.stop.Err() != nil || s.term.Err() != nil {
		if s.stopped() {
			return true // empty the queue: it ends the worker then
		}
		c.queue.Add(key) // for the next term
		return false
	}

	r := &reconcileContext[K]{
		Context: s.ctx, shift: s, key: key, worker: worker, began: time.Since(s.began),
	}
	if c.opts.ReconcileTimeout > 0 {
		var cancel context.CancelFunc
		r.Context, cancel = context.WithTimeoutCause(
			s.ctx, c.opts.ReconcileTimeout, errReconcileTimeout)
		defer cancel()
	}
	if c.keys.begin(r) { // not a dead letter: only a change can bring it back
		c.handle(r)
	}
	return true
}

// handle calls reconcile and acts on the result, even if the call panics or ends its goroutine.
func (c *Controller[K]) handle(r *reconcileContext[K]) {
	if c.opts.Metrics.Begin != nil {
		c.opts.Metrics.Begin()
	}
	var (
		result   Result
		err      error
		returned bool
	)
	defer func() {
		report := Report{
			TimedOut: c.opts.ReconcileTimeout > 0 &&
				errors.Is(context.Cause(r.Context), errReconcileTimeout),
			Panicked: !returned,
		}
		if !returned {
			value := recover()
			if value != nil && c.opts.Panic == CrashOnPanic {
				panic(value)
			}
			if value == nil {
				value = errGoexit
			}
			err = &PanicError{Value: value, Stack: debug.Stack()}
		}
		c.settle(r, result, err, &report)
		if c.opts.Metrics.End != nil {
			report.Took = time.Since(r.since())
			c.opts.Metrics.End(report)
		}
	}()
	result, err = c.reconcile(r, r.key)
	returned = true
}

// settle acts on a result of reconcile, as the table at ReconcileFunc says.
func (c *Controller[K]) settle(r *reconcileContext[K], result Result, err error, report *Report) {
	switch {
	case err != nil:
		report.Outcome, report.Terminal = OutcomeError, errors.Is(err, TerminalError(nil))
		if result.RequeueAfter > 0 {
			r.logger().Info("Reconcile returned an error and a RequeueAfter, which is ignored",
				"requeueAfter", result.RequeueAfter)
		}
		c.settleFailure(r, err, report)
	case result.RequeueAfter > 0:
		report.Outcome = OutcomeRequeueAfter
		c.keys.finish(r, report.Outcome)
		c.queue.Forget(r.key)
		c.queue.AddAfter(r.key, result.RequeueAfter)
	default:
		report.Outcome = OutcomeSuccess
		c.keys.finish(r, report.Outcome)
		c.queue.Forget(r.key)
	}
	if r.shift.logger.V(5).Enabled() {
		r.logger().V(5).Info("Reconciled",
			"outcome", report.Outcome, "requeueAfter", result.RequeueAfter)
	}
}

// settleFailure decides between a retry and giving up. If the object is gone, or the shift has
// ended, it does neither.
func (c *Controller[K]) settleFailure(r *reconcileContext[K], err error, report *Report) {
	logger := r.logger()
	if panicked, ok := errors.AsType[*PanicError](err); ok {
		logger.Error(err, "Reconcile panicked", "stack", string(panicked.Stack))
	}
	switch {
	case r.shift.ended():
		c.keys.cut(r)
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
		if c.extended != nil {
			c.extended.AddFailed(r.key, err) // the limiter may decide by the error
		} else {
			c.queue.AddRateLimited(r.key)
		}
		logger.Error(err, "Reconcile failed, trying again later")
	}
	if evicted != nil {
		report.Evicted = true
		c.queue.Forget(evicted.Key)
		logger.Info("Dropped the oldest dead letter, there are too many",
			"dropped", evicted.Key, "error", evicted.Last.Err)
	}
}
