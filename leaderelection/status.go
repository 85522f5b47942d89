// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"
)

// Status is what an elector can say of itself at one moment.
type Status struct {
	Phase  Phase
	Leader string       // the holder that was last seen
	Token  FencingToken // of the present term; zero if there is none
	Terms  int          // how often it has led, the present term included

	LastRenewal time.Time     // when the newest write that was accepted was sent; zero before the first
	Slack       time.Duration // how much time was left at the last renewal before the lease would have been lost
	LeastSlack  time.Duration // the least of all of this term's; 0 before the first renewal

	LastError           error     // the newest failed try, kept when it is over
	LastErrorTime       time.Time //
	ConsecutiveFailures int       // tries that failed in a row; that somebody else holds the lease is no failure
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

// noteRenewal notes a write that was accepted, the one that won the term with no slack.
func (e *LeaderElector) noteRenewal(sent clockReading, slack time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.status.LastRenewal = sent.mono
	e.status.ConsecutiveFailures = 0
	if e.term == nil {
		e.status.Slack, e.status.LeastSlack = 0, 0
		return
	}
	if e.status.LeastSlack == 0 || slack < e.status.LeastSlack {
		e.status.LeastSlack = slack
	}
	e.status.Slack = slack
}

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
	if errors.Is(err, errNotFree) {
		logger.V(4).Info("Not leading", "reason", err)
		return
	}
	logger.Error(err, "Leader election failed, trying again")
}

// note makes a transition visible: in Status, in the log, to the observer.
func (e *LeaderElector) note(ctx context.Context, t Transition) {
	e.setPhase(t.To)
	logger := klog.FromContext(ctx).WithValues("lock", e.config.Lock.Describe())
	switch {
	case t.To == Stopping:
		logger.Info("Stopped leading, waiting for the work to return", "reason", t.Err)
	case t.From == Releasing && t.Err != nil:
		logger.Error(t.Err, "The leader lease was not released, others wait for it to expire")
	default:
		logger.V(4).Info("Leader election goes on", "from", t.From, "to", t.To)
	}
	if e.config.Observe != nil {
		e.config.Observe(t)
	}
}
