// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"sync"
	"time"
)

const (
	// minRemembered is longer than the time between two failures of an item in a controller that
	// reconciles everything every ten hours, as many do.
	minRemembered = 12 * time.Hour
	// maxRemembered is the number of items that a limiter remembers at most.
	maxRemembered = 1 << 20
)

// failures maps items to their recent failures, and drops items that failed long ago. So items that
// are never forgotten, such as deleted ones, do not stay for ever.
//
// It has two generations. A failure moves the item to the young one. When the young generation has
// become old or large, it replaces the old one, whose items are dropped.
//
//	R1  an item that failed within the last keep is in a generation, unless maxLen/2 other items
//	    have failed since
//	R2  an item whose last failure was 2*keep before another item's is in no generation
//	R3  the generations contain at most maxLen items
//	R4  no item is in both generations
//
// Limiters embed it for its methods.
type failures[T comparable] struct {
	keep   time.Duration
	maxLen int

	mu         sync.Mutex
	young, old map[T]failure
	since      time.Time // no item in young failed before
}

// failure records the failures of an item.
type failure struct {
	count int
	next  time.Duration // of a TypedErrorTypeRateLimiter: the delay that Failed chose, or unset
}

// init keeps an item for at least twice the longest delay: it must not be dropped while it waits.
func (f *failures[T]) init(longestDelay time.Duration) {
	f.keep, f.maxLen = minRemembered, maxRemembered
	if longestDelay > minRemembered/2 {
		f.keep = longestDelay + min(longestDelay, 1<<63-1-longestDelay)
	}
}

// fail counts a failure of item and returns what was known before.
func (f *failures[T]) fail(item T) (before failure) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before = f.getLocked(item)
	f.putLocked(item, failure{count: before.count + 1}, time.Now())
	return before
}

// Forget resets item's count.
func (f *failures[T]) Forget(item T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.young, item)
	delete(f.old, item)
}

// NumRequeues is the number of item's failures since it was last forgotten.
func (f *failures[T]) NumRequeues(item T) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.getLocked(item).count
}

// Tracked is the number of items that the limiter remembers.
func (f *failures[T]) Tracked() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.lenLocked()
}

func (f *failures[T]) getLocked(item T) failure {
	if known, ok := f.young[item]; ok {
		return known
	}
	return f.old[item]
}

// putLocked records the failures of item, which failed at now.
func (f *failures[T]) putLocked(item T, known failure, now time.Time) {
	if f.lenLocked() == 0 {
		f.since = now
	}
	f.ageLocked(now)
	if f.young == nil {
		f.young = map[T]failure{}
	}
	delete(f.old, item)
	f.young[item] = known
}

func (f *failures[T]) ageLocked(now time.Time) {
	age := now.Sub(f.since)
	switch {
	case age-f.keep >= f.keep: // both are too old
		f.old, f.young = nil, nil
		f.since = now
	case age >= f.keep:
		f.old, f.young = f.young, nil
		f.since = f.since.Add(f.keep)
	case len(f.young) >= f.maxLen/2:
		f.old, f.young = f.young, nil
		f.since = now
	}
}

func (f *failures[T]) lenLocked() int {
	return len(f.young) + len(f.old)
}
