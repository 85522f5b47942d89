// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"time"

	"k8s.io/klog/v2"
)

// minimumResyncPeriod is the shortest resync period of a handler.
const minimumResyncPeriod = time.Second

// resyncSchedule is the time of the next resync of one handler. A resync is a replay of the whole
// store from memory.
type resyncSchedule struct {
	period time.Duration // 0: never
	next   time.Time     // the earliest time of the next resync
}

// check reports whether the handler takes part in a resync that begins now.
func (s *resyncSchedule) check(now time.Time) (due bool) {
	if s.period <= 0 || now.Before(s.next) {
		return false
	}
	s.next = now.Add(s.period)
	return true
}

// resyncRound is the result of one resync check: it maps the id of each listener to whether it
// takes part. Until the next check it selects the handlers that get updates without a change, from
// a resync or a relist. A round is immutable.
//
// A handler without an entry was added later, or the informer does no resyncs. It takes part,
// unless it has SkipUnchanged.
type resyncRound map[int]bool

// wants reports whether l gets c, an update without a change.
func (r resyncRound) wants(l *listener, c *change) bool {
	skip := l.options.SkipUnchanged
	due, asked := r[l.id]
	if !asked {
		due = !skip
	}
	return due && (c.resync || !skip)
}

// resyncPlan is the time between two resync checks of an informer, and so its shortest resync
// period.
type resyncPlan struct {
	checkPeriod time.Duration // 0: this informer does no resyncs
	fixed       bool          // the informer has started, and checkPeriod no longer changes
}

// admit returns the resync period of a handler that asks for wanted. Before the start a shorter
// period shortens the check period. After the start the check period is the minimum.
func (p *resyncPlan) admit(logger klog.Logger, wanted time.Duration) time.Duration {
	if wanted <= 0 {
		return 0
	}
	if wanted < minimumResyncPeriod {
		logger.Info("Warning: resync period is too small, using the minimum",
			"resyncPeriod", wanted, "minimumResyncPeriod", minimumResyncPeriod)
		wanted = minimumResyncPeriod
	}
	switch {
	case p.checkPeriod == 0:
		logger.Info("Warning: the handler's resync period is ignored because this informer does"+
			" no resyncs", "resyncPeriod", wanted)
		return 0
	case wanted >= p.checkPeriod:
		return wanted
	case p.fixed:
		logger.Info("Warning: resync period is below the check period of an informer that has"+
			" started, using the check period",
			"resyncPeriod", wanted, "resyncCheckPeriod", p.checkPeriod)
		return p.checkPeriod
	}
	p.checkPeriod = wanted
	return wanted
}
