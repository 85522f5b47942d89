// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"container/list"
	"sync"
	"time"
)

// keyTracker holds a controller's memory of its keys: the keys that workers reconcile, the keys
// that failed and will be retried, and the keys that were given up.
//
//	G1  A key is in at most one of failing and letters.
//	G2  No key of calls is in letters.
//	G3  failing[k].Attempts >= 1, and < maxAttempts if there is a maximum.
//	G4  len(letters) = order.Len() <= capacity; order is by the time of giving up.
//
// With a maximum, each change of a key is noted: it ends the count of the key's failures, and
// nothing else brings back a key that was given up. A change during a call counts as later than the
// state that the call saw. Without a maximum no change is noted, so that Enqueue does not wait for
// mu: any call brings its key back.
type keyTracker[K comparable] struct {
	maxAttempts int // 0: no maximum
	capacity    int

	mu       sync.Mutex
	calls    map[K]*reconcileContext[K] // that run now
	outcomes map[Outcome]uint64         // of finished calls
	failing  map[K]*FailedKey[K]
	letters  map[K]*list.Element // of *FailedKey[K]
	order    list.List
	evicted  uint64
}

func newKeyTracker[K comparable](maxAttempts, capacity int) *keyTracker[K] {
	return &keyTracker[K]{
		maxAttempts: maxAttempts,
		capacity:    capacity,
		calls:       map[K]*reconcileContext[K]{},
		outcomes:    map[Outcome]uint64{},
		failing:     map[K]*FailedKey[K]{},
		letters:     map[K]*list.Element{},
	}
}

// changed notes a change of key, if there is a maximum: its failures no longer count.
func (k *keyTracker[K]) changed(key K) {
	if k.maxAttempts == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if call := k.calls[key]; call != nil {
		call.changed = true
	}
	k.forgetLocked(key)
}

// begin notes that a worker begins a call, unless only a change brings its key back. Then it
// returns false.
func (k *keyTracker[K]) begin(call *reconcileContext[K]) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if letter := k.letters[call.key]; letter != nil {
		if k.maxAttempts > 0 {
			return false
		}
		k.removeLetterLocked(letter)
	}
	k.calls[call.key] = call
	return true
}

// cut ends a call that does not count: the failures before it do.
func (k *keyTracker[K]) cut(call *reconcileContext[K], outcome Outcome) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.outcomes[outcome]++
	delete(k.calls, call.key)
}

// finish ends a call and forgets the failures of its key.
func (k *keyTracker[K]) finish(call *reconcileContext[K], outcome Outcome) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.outcomes[outcome]++
	delete(k.calls, call.key)
	delete(k.failing, call.key)
}

// fail ends a call that returned err. If the key is given up, fail returns its dead letter and the
// letter that was evicted for it, if any.
//
// giveUp is a reason not to retry; with "", the number of attempts decides. After a change during
// the call the failure does not count: the key is queued already, and the call saw an old state.
func (k *keyTracker[K]) fail(
	call *reconcileContext[K], err error, giveUp Reason, now time.Time,
) (letter, evicted *FailedKey[K]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.outcomes[OutcomeError]++
	delete(k.calls, call.key)
	if call.changed {
		return nil, nil
	}
	f := k.failing[call.key]
	if f == nil {
		f = &FailedKey[K]{Key: call.key, First: Failure{Err: err, Time: now}}
		k.failing[call.key] = f
	}
	f.Attempts++
	f.Last = Failure{Err: err, Time: now}
	if giveUp == "" && k.maxAttempts > 0 && f.Attempts >= k.maxAttempts {
		giveUp = MaxAttempts
	}
	if giveUp == "" {
		return nil, nil
	}
	f.Reason = giveUp
	delete(k.failing, call.key)
	return f, k.addLetterLocked(f)
}

// forget drops everything about key except a call.
func (k *keyTracker[K]) forget(key K) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.forgetLocked(key)
}

func (k *keyTracker[K]) forgetLocked(key K) {
	delete(k.failing, key)
	if letter := k.letters[key]; letter != nil {
		k.removeLetterLocked(letter)
	}
}

func (k *keyTracker[K]) isDead(key K) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.letters[key] != nil
}

// addLetterLocked adds a letter of a key without a letter. It returns the letter that was evicted
// for it, if any.
func (k *keyTracker[K]) addLetterLocked(letter *FailedKey[K]) (evicted *FailedKey[K]) {
	if k.order.Len() >= k.capacity {
		evicted = k.removeLetterLocked(k.order.Front())
		k.evicted++
	}
	k.letters[letter.Key] = k.order.PushBack(letter)
	return evicted
}

// removeLetterLocked removes and returns the letter in an element of order.
func (k *keyTracker[K]) removeLetterLocked(element *list.Element) *FailedKey[K] {
	letter := k.order.Remove(element).(*FailedKey[K])
	delete(k.letters, letter.Key)
	return letter
}
