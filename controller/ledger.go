// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"container/list"
	"sync"
	"time"
)

// ledger is what a controller remembers of its keys: those being reconciled, those that failed and will be tried again, and
// those that were given up.
//
//	G1  A key is in at most one of failing and letters.
//	G2  No key is in both running and letters.
//	G3  failing[k].attempts >= 1, and < maxAttempts if there is a maximum.
//	G4  len(letters) = order.Len() <= capacity; order is by time of burial.
//
// A key that was given up does not come back by a retry, only by a change; a change that happens while the key is running
// counts as later than what the run saw.
type ledger[K comparable] struct {
	maxAttempts int // 0: no maximum
	capacity    int

	mu       sync.Mutex
	running  map[K]run[K]
	failing  map[K]streak
	letters  map[K]*list.Element // of *DeadLetter[K]
	order    list.List
	outcomes map[Outcome]uint64
	evicted  uint64
}

// run is one call of reconcile that has not been settled.
type run[K comparable] struct {
	turn    *turn[K]
	since   time.Time
	changed bool // the key was enqueued after the call began
}

// streak is the failures of a key since it last changed or succeeded.
type streak struct {
	attempts    int
	first, last Failure
}

func (s streak) after(err error, now time.Time) streak {
	s.attempts++
	s.last = Failure{Err: err, Time: now}
	if s.attempts == 1 {
		s.first = s.last
	}
	return s
}

func newLedger[K comparable](maxAttempts, capacity int) *ledger[K] {
	return &ledger[K]{
		maxAttempts: maxAttempts,
		capacity:    capacity,
		running:     map[K]run[K]{},
		failing:     map[K]streak{},
		letters:     map[K]*list.Element{},
		outcomes:    map[Outcome]uint64{},
	}
}

// changed notes that key is to be seen with new eyes.
func (l *ledger[K]) changed(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r, ok := l.running[key]; ok {
		r.changed = true
		l.running[key] = r
	}
	delete(l.failing, key)
	l.unburyLocked(key)
}

// begin opens the run of a turn, unless its key is a dead letter.
func (l *ledger[K]) begin(t *turn[K], now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, dead := l.letters[t.key]; dead {
		return false
	}
	l.running[t.key] = run[K]{turn: t, since: now}
	return true
}

// succeeded closes a run that ended well.
func (l *ledger[K]) succeeded(key K, outcome Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outcomes[outcome]++
	delete(l.running, key)
	delete(l.failing, key)
}

// failed closes a run that ended with err. If the key is given up, it returns the letter that it became, and the letter that
// had to make room.
//
// giveUp names a reason not to try again; with "", the attempts decide. After a change during the run nothing is given up or
// counted: the key is queued already, and what failed was the past.
func (l *ledger[K]) failed(key K, err error, giveUp Reason, now time.Time) (buried, evicted *DeadLetter[K]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outcomes[OutcomeError]++
	changed := l.running[key].changed
	delete(l.running, key)
	if changed {
		return nil, nil
	}
	s := l.failing[key].after(err, now)
	if giveUp == "" && l.maxAttempts > 0 && s.attempts >= l.maxAttempts {
		giveUp = MaxAttempts
	}
	if giveUp == "" {
		l.failing[key] = s
		return nil, nil
	}
	delete(l.failing, key)
	letter := &DeadLetter[K]{Key: key, Reason: giveUp, Attempts: s.attempts, First: s.first, Last: s.last}
	return letter, l.buryLocked(letter)
}

// abandoned closes a run that failed, of which nothing is to be remembered.
func (l *ledger[K]) abandoned(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.outcomes[OutcomeError]++
	delete(l.running, key)
	delete(l.failing, key)
}

// forget drops all but the run.
func (l *ledger[K]) forget(key K) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.failing, key)
	l.unburyLocked(key)
}

func (l *ledger[K]) isDead(key K) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, dead := l.letters[key]
	return dead
}

// buryLocked adds a letter whose key has none, and returns the one that had to make room.
func (l *ledger[K]) buryLocked(letter *DeadLetter[K]) (evicted *DeadLetter[K]) {
	if l.order.Len() >= l.capacity {
		evicted = l.order.Front().Value.(*DeadLetter[K])
		l.unburyLocked(evicted.Key)
		l.evicted++
	}
	l.letters[letter.Key] = l.order.PushBack(letter)
	return evicted
}

func (l *ledger[K]) unburyLocked(key K) (letter *DeadLetter[K]) {
	element, dead := l.letters[key]
	if !dead {
		return nil
	}
	delete(l.letters, key)
	return l.order.Remove(element).(*DeadLetter[K])
}
