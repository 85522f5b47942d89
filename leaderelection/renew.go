// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"time"

	"k8s.io/klog/v2"
)

// renewUntil renews the lease every RetryPeriod. It returns nil once until is done, and an error
// once the term is over: the lease could not be renewed in time, or another process holds it. A
// pending renewal is cancelled when until is done; the next attempt shows whether the server has
// done it.
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
			e.due = begun.Add(e.config.RetryPeriod) // so a slow answer does not delay the next
			if logger := klog.FromContext(until).V(5); logger.Enabled() {
				logger.Info("Renewed the leader lease", "lock", e.config.Lock.Describe())
			}
		case errors.Is(err, ErrLost):
			return t.end(err)
		case requests.Err() != nil: // cancelled: if the term lasts, try again at once
			e.due = time.Now()
		default:
			e.noteFailure(until, err)
			e.due = begun.Add(e.config.RetryPeriod)
		}
		timer.Reset(time.Until(e.due))
	}
}
