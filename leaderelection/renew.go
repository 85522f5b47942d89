// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"
)

// renewalJitter is the part of RetryPeriod by which a renewal may be early.
const renewalJitter = 10

// renewUntil renews the lease every RetryPeriod, or a little earlier: see nextRenewal. It returns
// nil once until is done, and an error once the term is over: the lease could not be renewed in
// time, or another process holds it. A pending renewal is cancelled when until is done; the next
// attempt shows whether the server has done it.
func (e *LeaderElector) renewUntil(until context.Context) error {
	t := e.term
	requests, cancel := context.WithCancel(until)
	defer cancel()
	defer context.AfterFunc(t.lasting, cancel)()
	timer := time.NewTimer(time.Until(e.due))
	defer timer.Stop()
	for {
		select {
		case <-requests.Done():
		case <-timer.C:
		}
		switch {
		case !t.valid():
			return t.end(nil)
		case until.Err() != nil:
			return nil
		}

		begun := time.Now()
		err := e.attempt(requests)
		e.notifier.seen(e.observed.HolderIdentity)
		switch {
		case err == nil:
			e.due = e.nextRenewal(begun) // so a slow answer does not delay the next
			if logger := klog.FromContext(until).V(5); logger.Enabled() {
				logger.Info("Renewed the leader lease", "lock", e.config.Lock.Describe())
			}
		case errors.Is(err, ErrLost):
			return t.end(err)
		case requests.Err() != nil: // cancelled: if the term lasts, try again at once
			e.due = time.Now()
		default:
			e.noteFailure(until, err)
			e.due = e.nextRenewal(begun)
		}
		timer.Reset(time.Until(e.due))
	}
}

// nextRenewal is when the renewal after one that began at begun is due: RetryPeriod later, less up
// to a tenth of it. If an outage ends the hung requests of many processes at once, they do not
// renew together from then on.
func (e *LeaderElector) nextRenewal(begun time.Time) time.Time {
	period := e.config.RetryPeriod
	return begun.Add(period - time.Duration(e.jitter()*float64(period)/renewalJitter))
}
