// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"maps"
	"time"

	"k8s.io/klog/v2"
)

// minimumResyncPeriod is the shortest resync period of a handler.
const minimumResyncPeriod = time.Second

// resyncSchedule says when one handler is due for a resync: a replay of the whole store, from memory.
type resyncSchedule struct {
	period time.Duration // 0: never
	next   time.Time     // the earliest time of the next resync
}

func newResyncSchedule(period time.Duration, now time.Time) resyncSchedule {
	return resyncSchedule{period: period, next: now.Add(period)}
}

// check decides whether the handler takes part in the resync that may begin now.
func (s *resyncSchedule) check(now time.Time) (due bool) {
	if s.period <= 0 || now.Before(s.next) {
		return false
	}
	s.next = now.Add(s.period)
	return true
}

// resyncRound is the outcome of one resync check: which handlers take part. It stands until the next check and decides who
// is told of updates that change nothing: of a resync, and of what a relist found as it was. It does not change.
//
// A handler that no check has asked yet, because it was added later or there are no resyncs, takes part, unless it wants
// none of those updates.
type resyncRound map[*listener]bool

// wants decides about c, an update that changed nothing.
func (r resyncRound) wants(l *listener, c *change) bool {
	skip := l.options.SkipUnchanged
	due, asked := r[l]
	if !asked {
		due = !skip
	}
	return due && (c.resync || !skip)
}

// without returns the same round less l, which is gone and need not be remembered.
func (r resyncRound) without(l *listener) resyncRound {
	if _, asked := r[l]; !asked {
		return r
	}
	r = maps.Clone(r)
	delete(r, l)
	return r
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
