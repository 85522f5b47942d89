// SPDX-License-Identifier: Apache-2.0

package journal

import "time"

// period is half of the time that recent counts are about, at most: what is new shows within
// minutes, however long the recording is.
const period = 5 * time.Minute

// periods counts in the present period and in the one before. The zero value has counted nothing.
type periods[T any] struct {
	at          int64 // number of the present period
	now, before T
}

// in returns the counts of a period, which becomes the present one.
func (p *periods[T]) in(at int64) *T {
	var none T
	switch {
	case at == p.at+1:
		p.now, p.before = none, p.now
	case at > p.at:
		p.now, p.before = none, none
	}
	p.at = at
	return &p.now
}

// periodAt returns the number of the period at a time.
func (j *Journal) periodAt(now time.Time) int64 { return int64(now.Sub(j.since) / period) }

// recentSinceLocked returns the beginning of the period before the present one.
func (j *Journal) recentSinceLocked() time.Time {
	return j.since.Add(time.Duration(max(0, j.periodAt(time.Now())-1)) * period)
}

// CallCounts are about calls of a handler.
type CallCounts struct {
	Calls, Updates, Idle int
	Time, Longest        time.Duration
}

func (c CallCounts) plus(other CallCounts) CallCounts {
	return CallCounts{c.Calls + other.Calls, c.Updates + other.Updates, c.Idle + other.Idle,
		c.Time + other.Time, max(c.Longest, other.Longest)}
}

// ReconcileCounts are about reconciles of a queue.
type ReconcileCounts struct{ Reconciles, Resyncs int }

func (c ReconcileCounts) plus(other ReconcileCounts) ReconcileCounts {
	return ReconcileCounts{c.Reconciles + other.Reconciles, c.Resyncs + other.Resyncs}
}
