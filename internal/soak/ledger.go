// SPDX-License-Identifier: Apache-2.0

package main

import (
	"sync"
	"time"
)

// mark is the newest state of one object: its resourceVersion in the upper bits, and in the lowest
// bit whether it is the deletion. 0 means that the object never existed.
type mark uint64

func present(version uint64) mark { return mark(version << 1) }
func deleted(version uint64) mark { return mark(version<<1 | 1) }

func (m mark) version() uint64 { return uint64(m >> 1) }
func (m mark) absent() bool    { return m == 0 || m&1 == 1 }

// entry is the server's newest state of one object.
type entry struct {
	mark
	lastDelete uint64 // the version of its newest deletion
	written    time.Time
}

// ledger is the content of the server, by the number of the object. Its writer notes each change
// after the server has accepted it.
type ledger struct {
	mu      sync.Mutex
	entries []entry
}

func newLedger(names int) *ledger { return &ledger{entries: make([]entry, names)} }

func (l *ledger) note(n int, m mark) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &l.entries[n]
	e.mark, e.written = m, time.Now()
	if m.absent() {
		e.lastDelete = m.version()
	}
}

func (l *ledger) get(n int) mark {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[n].mark
}

func (l *ledger) snapshot() []entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]entry(nil), l.entries...)
}

// delivered reports whether a handler with mark got has been notified of want or of a later state.
// now is a later entry of the same object. The version of a tombstone may be older than the
// deletion.
func delivered(want, now entry, got mark) bool {
	switch {
	case want.mark == 0 || got.version() >= want.version():
		return true
	case !got.absent():
		return false
	}
	return want.absent() || now.lastDelete > want.version()
}

// same reports whether a handler with mark got has the last state.
func same(want, got mark) bool { return want == got || want.absent() && got.absent() }

// lag is how far a handler is behind the server.
type lag struct {
	oldest  time.Duration // the age of the oldest change that was not delivered; 0 without one
	overdue int           // changes that were not delivered for the time overdueAfter
}

// overdueAfter is longer than any fault, with the waits after it.
const overdueAfter = time.Minute

// compare compares the marks of one handler with two snapshots, of the time at and of a time after
// the marks were read.
func compare(before, after []entry, got []mark, at time.Time) lag {
	var l lag
	for n, want := range before {
		if delivered(want, after[n], got[n]) {
			continue
		}
		age := at.Sub(want.written)
		l.oldest = max(l.oldest, age)
		if age > overdueAfter {
			l.overdue++
		}
	}
	return l
}

// missing counts the objects whose last state a handler with these marks does not have.
func missing(want []entry, got []mark) int {
	count := 0
	for n, e := range want {
		if !same(e.mark, got[n]) {
			count++
		}
	}
	return count
}
