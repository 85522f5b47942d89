// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"time"

	"k8s.io/klog/v2"
)

// minimumResyncPeriod is the shortest resync period of a handler.
const minimumResyncPeriod = time.Second

// resyncSchedule says when one handler is due for a resync: a replay of the whole store, from memory.
//
// The informer asks at every resync check, and the answer holds until the next one. A relist that finds an object unchanged
// looks like a resync, and is told to the same handlers.
//
// Law:
//
//	R1  due is recomputed by check alone; it starts true, unless the handler does not want unchanged objects
type resyncSchedule struct {
	period        time.Duration // 0: never
	next          time.Time     // the earliest time of the next resync
	due           bool
	skipUnchanged bool
}

func newResyncSchedule(period time.Duration, now time.Time, skipUnchanged bool) resyncSchedule {
	return resyncSchedule{period: period, next: now.Add(period), due: !skipUnchanged, skipUnchanged: skipUnchanged}
}

// check decides whether the handler takes part in the resync that may begin now.
func (s *resyncSchedule) check(now time.Time) bool {
	s.due = s.period > 0 && !now.Before(s.next)
	if s.due {
		s.next = now.Add(s.period)
	}
	return s.due
}

// wants decides about an update that changed nothing.
func (s *resyncSchedule) wants(c *change) bool {
	return s.due && (c.resync || !s.skipUnchanged)
}

// resyncPlan is how often an informer checks which handlers are due, and so the shortest period it can serve.
type resyncPlan struct {
	checkPeriod time.Duration // 0: this informer does no resyncs
	fixed       bool          // the informer has started, checkPeriod stands
}

// admit returns the period that a handler asking for wanted gets. Before the start a short one shortens the check period;
// after it, the check period bounds it from below.
func (p *resyncPlan) admit(logger klog.Logger, wanted time.Duration) time.Duration {
	if wanted <= 0 {
		return 0
	}
	if wanted < minimumResyncPeriod {
		logger.Info("Warning: resync period is too small, using the minimum", "resyncPeriod", wanted, "minimumResyncPeriod", minimumResyncPeriod)
		wanted = minimumResyncPeriod
	}
	switch {
	case p.checkPeriod == 0:
		logger.Info("Warning: the handler's resync period is ignored because this informer does no resyncs", "resyncPeriod", wanted)
		return 0
	case wanted >= p.checkPeriod:
		return wanted
	case p.fixed:
		logger.Info("Warning: resync period is below the check period of an informer that has started, using the check period",
			"resyncPeriod", wanted, "resyncCheckPeriod", p.checkPeriod)
		return p.checkPeriod
	}
	p.checkPeriod = wanted
	return wanted
}
