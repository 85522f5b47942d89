// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"
)

// Status is the state of an elector at one time.
type Status struct {
	Phase  Phase
	Leader string       // the holder that was last seen
	Token  FencingToken // of the current term; zero without a term
	Terms  int          // how often it has led, the current term included

	RetryPeriod time.Duration // of the configuration: the longest time between two renewals
	LastRenewal time.Time     // when the last accepted write was sent; zero before the first
	Slack       time.Duration // time left at the last renewal until the lease would have been lost
	LeastSlack  time.Duration // the least slack of this term; 0 before the first renewal

	LastError           error     // of the last attempt that failed, also after a success
	LastErrorTime       time.Time //
	ConsecutiveFailures int       // failed attempts in a row; a lease held by another is no failure
}

// Status returns a snapshot. It is cheap.
func (e *LeaderElector) Status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.status
	s.Leader = e.observed.HolderIdentity
	if e.term != nil {
		s.Token, _ = e.term.fence()
	}
	return s
}

func (e *LeaderElector) setPhase(p Phase) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status.Phase = p
}

// noteRenewal notes a write that was accepted. The write that won the term has no slack.
func (e *LeaderElector) noteRenewal(sent clockReading, slack time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status.LastRenewal = sent.mono
	e.status.ConsecutiveFailures = 0
	e.status.Slack = slack
	if e.term == nil || e.status.LeastSlack == 0 || slack < e.status.LeastSlack {
		e.status.LeastSlack = slack
	}
}

// noteFailure notes an attempt that failed. The error names the lease and the operation.
func (e *LeaderElector) noteFailure(ctx context.Context, err error) {
	logger := klog.FromContext(ctx)
	e.mu.Lock()
	if errors.Is(err, errNotFree) {
		e.status.ConsecutiveFailures = 0
	} else {
		e.status.ConsecutiveFailures++
		e.status.LastError, e.status.LastErrorTime = err, time.Now()
	}
	e.mu.Unlock()
	switch {
	case errors.Is(err, errNotFree):
		logger.V(4).Info("Not leading", "reason", err)
	case e.term == nil:
		logger.Error(err, "Attempt to acquire the leader lease failed, trying again")
	default:
		if left, ok := e.term.left(); ok {
			logger.Error(
				err, "Attempt to renew the leader lease failed, still leading", "timeLeft", left,
			)
		}
	}
}

// note reports a transition in Status, in the log and to the observer.
func (e *LeaderElector) note(ctx context.Context, t Transition) {
	e.setPhase(t.To)
	logger := klog.FromContext(ctx).WithValues("lock", e.config.Lock.Describe())
	switch {
	case t.To == Stopping:
		logger.Info("Failed to renew lease, stopped leading", "reason", t.Err)
	case t.From == Releasing && t.Err != nil:
		logger.Error(t.Err, "Failed to release lease, it will expire")
	default:
		logger.V(4).Info("Leader election phase changed", "from", t.From, "to", t.To)
	}
	if e.config.Observe != nil {
		e.config.Observe(t)
	}
}
