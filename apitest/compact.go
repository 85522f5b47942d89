// SPDX-License-Identifier: Apache-2.0

package apitest

import "time"

// marks remember past resourceVersions of the log, so that compaction can keep a span of time.
type marks struct {
	interval time.Duration // 0 or less: no compaction by time
	at       time.Time
	rv       int64
}

// tick compacts states that are older than one to two intervals, as kube-apiserver's compactor
// does. It has no goroutine: requests and writes call it.
func (l *revisionLog) tickLocked(now time.Time) {
	m := &l.marks
	if m.interval <= 0 || now.Sub(m.at) < m.interval {
		return
	}
	l.compactLocked(m.rv)
	if now.Sub(m.at) >= 2*m.interval {
		l.compactLocked(l.rv) // no write for a whole interval: both marks are due
	}
	m.at, m.rv = now, l.rv
}

// trimLocked bounds the number of events that are kept for watches.
func (l *revisionLog) trimLocked() {
	if l.historyLen > 0 && l.eventCount > l.historyLen {
		l.compactLocked(l.rv - int64(l.historyLen/2))
	}
}

// compactLocked forgets the states before rv.
func (l *revisionLog) compactLocked(rv int64) {
	rv = min(rv, l.visible)
	if rv <= l.compacted {
		return
	}
	l.compacted = rv
	for _, c := range l.collections {
		l.eventCount -= c.compactLocked(rv)
	}
}

// compactLocked drops the events up to rv, cuts the versions that only they could show, and returns
// how many it dropped.
func (c *collection) compactLocked(rv int64) int {
	n := c.afterLocked(rv) - c.dropped
	gone := false
	for _, e := range c.events[:n] {
		v := e.now
		v.prev = nil
		key := objectKey(v.namespace, v.name)
		if entry := c.byKey[key]; v.deleted && entry != nil && entry.head == v {
			delete(c.byKey, key)
			gone = true
		}
	}
	if gone {
		kept := c.entries[:0]
		for _, e := range c.entries {
			if c.byKey[e.key] == e {
				kept = append(kept, e)
			}
		}
		clear(c.entries[len(kept):])
		c.entries = kept
	}
	c.events = append([]event(nil), c.events[n:]...)
	c.dropped += n
	return n
}
