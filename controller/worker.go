// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"k8s.io/klog/v2"

	"example.com/informerstack/workqueue"
)

var (
	// errReconcileTimeout is the cause of a context that Options.ReconcileTimeout ended.
	errReconcileTimeout = errors.New("the reconcile timeout has passed")
	// errGoexit is the value of the PanicError of a reconcile that ended its goroutine.
	errGoexit = errors.New("reconcile called runtime.Goexit")
)

// runWorker handles keys until the queue is shut down and empty, or the shift ends. If reconcile
// ends the worker's goroutine, another worker takes its place.
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
func (c *Controller[K]) processNextWorkItem(s *shift) bool {
	key, shutdown := c.get(s.taking)
	if shutdown {
		return false
	}
	defer c.queue.Done(key)
	if s.stopped() {
		if s.run.Err() != nil {
			return true // empty the queue: it ends the worker then
		}
		c.queue.Add(key) // for the next term
		return false
	}

	ctx := s.ctx
	if c.opts.ReconcileTimeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.opts.ReconcileTimeout, errReconcileTimeout)
		defer cancel()
	}
	r, start := &reconcileContext[K]{Context: ctx, shift: s, key: key}, time.Now()
	if !c.keys.begin(r, start) {
		return true // a dead letter: only a change can bring it back
	}
	if c.opts.Metrics != nil {
		c.opts.Metrics.Begin()
	}
	c.handle(r, start)
	return true
}

// handle calls reconcile and acts on the result, also if the call panics or ends its goroutine.
func (c *Controller[K]) handle(r *reconcileContext[K], start time.Time) {
	var (
		result   Result
		err      error
		report   Report
		returned bool
	)
	defer func() {
		report.TimedOut = errors.Is(context.Cause(r.Context), errReconcileTimeout)
		if !returned {
			value := recover()
			if value != nil && c.opts.Panic == CrashOnPanic {
				panic(value)
			}
			if value == nil {
				value = errGoexit
			}
			report.Panicked = true
			err = &PanicError{Value: value, Stack: debug.Stack()}
		}
		c.settle(r, result, err, &report)
		if c.opts.Metrics != nil {
			report.Took = time.Since(start)
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
		report.Outcome, report.Terminal = OutcomeError, IsTerminal(err)
		if result.RequeueAfter > 0 {
			r.logger().Info("Reconcile returned an error and a RequeueAfter, which is ignored",
				"requeueAfter", result.RequeueAfter)
		}
		c.settleFailure(r, err, report)
	case result.RequeueAfter > 0:
		report.Outcome = OutcomeRequeueAfter
		c.keys.succeeded(r.key, report.Outcome)
		c.queue.Forget(r.key)
		c.queue.AddAfter(r.key, result.RequeueAfter)
	default:
		report.Outcome = OutcomeSuccess
		c.keys.succeeded(r.key, report.Outcome)
		c.queue.Forget(r.key)
	}
	if klog.FromContext(r.Context).V(5).Enabled() {
		r.logger().V(5).Info("Reconciled", "outcome", report.Outcome, "requeueAfter", result.RequeueAfter)
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
		c.keys.abandoned(r.key)
		c.queue.Add(r.key) // for the next term, if there is one
		logger.Error(err, "Reconcile was cut short by the stop")
		return
	case c.opts.Exists != nil && !c.opts.Exists(r.key):
		c.keys.abandoned(r.key)
		c.queue.Forget(r.key)
		logger.Error(err, "Reconcile failed for something that is gone, not trying again")
		return
	}

	giveUp := Reason("")
	switch {
	case report.Terminal:
		giveUp = Terminal
	case report.Panicked && c.opts.Panic == BuryPanic:
		giveUp = Panicked
	}
	buried, evicted := c.keys.failed(r.key, err, giveUp, time.Now())
	switch {
	case buried != nil:
		report.Buried = buried.Reason
		if buried.Reason != Terminal {
			c.queue.Forget(r.key)
		}
		logger.Error(err, "Reconcile failed, giving up until something changes",
			"reason", buried.Reason, "attempts", buried.Attempts)
	case giveUp == Terminal:
		logger.Error(err, "Reconcile failed terminally, but a change has come in since")
	default:
		c.addRateLimited(r.key, err)
		logger.Error(err, "Reconcile failed, trying again later")
	}
	if evicted != nil {
		report.Evicted = true
		c.queue.Forget(evicted.Key)
		logger.Info("Dropped the oldest dead letter, there are too many",
			"dropped", evicted.Key, "error", evicted.Last.Err)
	}
}

// addRateLimited queues a failed key for a retry. An ExtendedInterface receives the error, since its
// limiter may decide by it.
func (c *Controller[K]) addRateLimited(key K, err error) {
	if queue, ok := c.queue.(workqueue.ExtendedInterface[K]); ok {
		queue.AddFailed(key, err)
		return
	}
	c.queue.AddRateLimited(key)
}
