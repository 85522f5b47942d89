// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"time"
)

const (
	// minRemembered is longer than the time between two failures of an item in a controller that
	// reconciles everything every ten hours, as many do.
	minRemembered = 12 * time.Hour
	// maxRemembered is the number of items that a limiter remembers at most.
	maxRemembered = 1 << 20
)

// failures maps items to what is known about their failures, and drops items that failed long ago,
// so that items which are never forgotten, such as deleted ones, do not stay for ever.
//
// It has two generations. A failure moves the item to the young one. When the young generation has
// become old or large, it replaces the old one, whose items are dropped.
//
//	R1  an item that failed within the last keep is in a generation, unless maxLen/2 other items
//	    have failed since
//	R2  an item whose last failure was 2*keep before another item's is in none
//	R3  the generations contain at most maxLen items
//	R4  no item is in both generations
//
// The limiter's mutex guards it.
type failures[T comparable, V any] struct {
	keep   time.Duration
	maxLen int

	young, old map[T]V
	since      time.Time // no item in young failed before
}

// newFailures keeps an item for at least twice the longest delay: it must not be dropped while it
// waits.
func newFailures[T comparable, V any](longestDelay time.Duration) failures[T, V] {
	keep := minRemembered
	if longestDelay > minRemembered/2 {
		keep = longestDelay + min(longestDelay, 1<<63-1-longestDelay)
	}
	return failures[T, V]{keep: keep, maxLen: maxRemembered}
}

func (f *failures[T, V]) get(item T) V {
	if v, ok := f.young[item]; ok {
		return v
	}
	return f.old[item]
}

// put maps item, which failed at now, to v.
func (f *failures[T, V]) put(item T, v V, now time.Time) {
	if f.len() == 0 {
		f.since = now
	}
	f.age(now)
	if f.young == nil {
		f.young = map[T]V{}
	}
	delete(f.old, item)
	f.young[item] = v
}

func (f *failures[T, V]) age(now time.Time) {
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

func (f *failures[T, V]) forget(item T) {
	delete(f.young, item)
	delete(f.old, item)
}

func (f *failures[T, V]) len() int {
	return len(f.young) + len(f.old)
}
