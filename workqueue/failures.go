// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"time"
)

const (
	// minRemembered is longer than an item may rest between two failures of a controller that looks at everything every
	// ten hours or so.
	minRemembered = 12 * time.Hour
	// maxRemembered is how many items a limiter remembers at most.
	maxRemembered = 1 << 20
)

// failures remembers something about the items that failed lately, so that those which nobody forgets, such as deleted
// ones, do not stay for ever.
//
// It keeps two generations. A failure puts the item into the young one. When that has grown old or large, it takes the
// place of the old one, whose items are gone.
//
//	F1  an item that failed within the last keep is remembered, unless maxLen/2 others have failed since
//	F2  an item whose last failure was 2*keep before another item's is not
//	F3  at most maxLen items are remembered
//	F4  no item is in both generations
//
// It has no lock; that of the limiter guards it.
type failures[T comparable, V any] struct {
	keep   time.Duration
	maxLen int

	young, old map[T]V
	since      time.Time // young has nothing that failed before
}

// newFailures remembers for twice the longest delay at least: an item must not be forgotten while it waits.
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

// put remembers v about item, which failed at now.
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
