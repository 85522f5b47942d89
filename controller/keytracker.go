// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"container/list"
	"sync"
	"time"
)

// keyTracker holds what a controller remembers of its keys: those being reconciled, those that
// failed and will be retried, and those that were given up.
//
//	G1  A key is in at most one of failing and letters.
//	G2  No key is in both running and letters.
//	G3  failing[k].attempts >= 1, and < maxAttempts if there is a maximum.
//	G4  len(letters) = order.Len() <= capacity; order is by the time at which the key was given up.
//
// A retry does not bring back a key that was given up, only a change does. A change during a run
// counts as later than the state that the run saw.
type keyTracker[K comparable] struct {
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
	ctx     *reconcileContext[K]
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

func newKeyTracker[K comparable](maxAttempts, capacity int) *keyTracker[K] {
	return &keyTracker[K]{
		maxAttempts: maxAttempts,
		capacity:    capacity,
		running:     map[K]run[K]{},
		failing:     map[K]streak{},
		letters:     map[K]*list.Element{},
		outcomes:    map[Outcome]uint64{},
	}
}

// changed notes a change of key: its failures no longer count.
func (k *keyTracker[K]) changed(key K) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r, ok := k.running[key]; ok {
		r.changed = true
		k.running[key] = r
	}
	delete(k.failing, key)
	k.removeLetterLocked(key)
}

// begin starts a run, unless its key is a dead letter.
func (k *keyTracker[K]) begin(r *reconcileContext[K], now time.Time) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if _, dead := k.letters[r.key]; dead {
		return false
	}
	k.running[r.key] = run[K]{ctx: r, since: now}
	return true
}

// succeeded ends a run that returned no error.
func (k *keyTracker[K]) succeeded(key K, outcome Outcome) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.outcomes[outcome]++
	delete(k.running, key)
	delete(k.failing, key)
}

// failed ends a run that returned err. If the key is given up, failed returns its dead letter and
// the letter that was evicted for it, if any.
//
// giveUp is a reason not to retry; with "", the number of attempts decides. After a change during
// the run the failure does not count: the key is queued already, and the run saw an old state.
func (k *keyTracker[K]) failed(key K, err error, giveUp Reason, now time.Time) (buried, evicted *DeadLetter[K]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.outcomes[OutcomeError]++
	changed := k.running[key].changed
	delete(k.running, key)
	if changed {
		return nil, nil
	}
	s := k.failing[key].after(err, now)
	if giveUp == "" && k.maxAttempts > 0 && s.attempts >= k.maxAttempts {
		giveUp = MaxAttempts
	}
	if giveUp == "" {
		k.failing[key] = s
		return nil, nil
	}
	delete(k.failing, key)
	letter := &DeadLetter[K]{Key: key, Reason: giveUp, Attempts: s.attempts, First: s.first, Last: s.last}
	return letter, k.addLetterLocked(letter)
}

// abandoned ends a run that failed, and forgets its key's failures.
func (k *keyTracker[K]) abandoned(key K) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.outcomes[OutcomeError]++
	delete(k.running, key)
	delete(k.failing, key)
}

// forget drops everything about key except a run.
func (k *keyTracker[K]) forget(key K) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.failing, key)
	k.removeLetterLocked(key)
}

func (k *keyTracker[K]) isDead(key K) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, dead := k.letters[key]
	return dead
}

// addLetterLocked adds the letter of a key that has none, and returns the one that was evicted for
// it, if any.
func (k *keyTracker[K]) addLetterLocked(letter *DeadLetter[K]) (evicted *DeadLetter[K]) {
	if k.order.Len() >= k.capacity {
		evicted = k.order.Front().Value.(*DeadLetter[K])
		k.removeLetterLocked(evicted.Key)
		k.evicted++
	}
	k.letters[letter.Key] = k.order.PushBack(letter)
	return evicted
}

func (k *keyTracker[K]) removeLetterLocked(key K) (letter *DeadLetter[K]) {
	element, dead := k.letters[key]
	if !dead {
		return nil
	}
	delete(k.letters, key)
	return k.order.Remove(element).(*DeadLetter[K])
}
