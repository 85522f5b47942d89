// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	"example.com/informerstack/workqueue"
)

// Reason is why a key was given up.
type Reason string

// The reasons.
const (
	MaxAttempts Reason = "MaxAttempts" // Options.MaxAttempts calls failed, and nothing changed
	Terminal    Reason = "Terminal"    // reconcile returned a TerminalError
	Panicked    Reason = "Panicked"    // reconcile panicked under DeadLetterOnPanic
)

// Failure is one failed call of reconcile.
type Failure struct {
	Err  error
	Time time.Time // when the call ended
}

// FailedKey describes a key and its failed calls of reconcile. The key will be retried, or it was
// given up and is a dead letter.
type FailedKey[K comparable] struct {
	Key      K
	Reason   Reason  // why it was given up; "" if it will be retried
	Attempts int     // failed calls in a row, at least 1; with a maximum, since the last change
	First    Failure // of these calls
	Last     Failure
}

// DeadLetters holds the keys that a controller has given up. A key leaves when it changes
// (Controller.Enqueue, or an event that its handler sees), or by Replay or Discard. The oldest key
// leaves when there is no room for another. A resync is not a change.
//
// With Options.MaxAttempts, dead letters are not reconciled, even when a delay ends that was
// requested earlier. Without it, the end of such a delay has the effect of a change, and the key
// leaves when the next call of reconcile begins: an Enqueue does not look for dead letters.
//
// All methods are safe for concurrent use, before, during and after Run.
type DeadLetters[K comparable] struct {
	keys  *keyTracker[K]
	queue workqueue.TypedRateLimitingInterface[K]
}

// Len counts the letters.
func (d *DeadLetters[K]) Len() int {
	d.keys.mu.Lock()
	defer d.keys.mu.Unlock()
	return len(d.keys.letters)
}

// List returns copies of all letters, those given up first in front.
func (d *DeadLetters[K]) List() []FailedKey[K] {
	d.keys.mu.Lock()
	defer d.keys.mu.Unlock()
	letters := make([]FailedKey[K], 0, len(d.keys.letters))
	for element := d.keys.order.Front(); element != nil; element = element.Next() {
		letters = append(letters, *element.Value.(*FailedKey[K]))
	}
	return letters
}

// Get returns a copy of key's letter, and whether there is one.
func (d *DeadLetters[K]) Get(key K) (FailedKey[K], bool) {
	d.keys.mu.Lock()
	defer d.keys.mu.Unlock()
	element, dead := d.keys.letters[key]
	if !dead {
		return FailedKey[K]{}, false
	}
	return *element.Value.(*FailedKey[K]), true
}

// Replay takes key's letter out and queues the key, with all its attempts before it and no delay
// from the rate limiter. It returns false, and does nothing, if there is no such letter.
func (d *DeadLetters[K]) Replay(key K) bool {
	if !d.Discard(key) {
		return false
	}
	d.queue.Add(key)
	return true
}

// ReplayAll replays every letter, in List's order, and returns how many there were.
func (d *DeadLetters[K]) ReplayAll() int {
	return d.each(d.Replay)
}

// Discard takes key's letter out, and lets the rate limiter forget the key. The key is not
// reconciled until it changes, or until a delay ends that was asked for earlier. It returns false,
// and does nothing, if there is no such letter.
func (d *DeadLetters[K]) Discard(key K) bool {
	d.keys.mu.Lock()
	element, dead := d.keys.letters[key]
	if dead {
		d.keys.removeLetterLocked(element)
	}
	d.keys.mu.Unlock()
	if dead {
		d.queue.Forget(key)
	}
	return dead
}

// DiscardAll discards every letter and returns how many there were.
func (d *DeadLetters[K]) DiscardAll() int {
	return d.each(d.Discard)
}

func (d *DeadLetters[K]) each(do func(key K) bool) int {
	count := 0
	for _, letter := range d.List() {
		if do(letter.Key) {
			count++
		}
	}
	return count
}
