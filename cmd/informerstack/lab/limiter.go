// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/workqueue"
)

// The limiters that a reader can choose, without the words that their names have in common.
const (
	maxOf       = "MaxOf" // exponential and bucket: the default of a controller
	exponential = "Exponential"
	fastSlow    = "FastSlow"
	onlyBucket  = "Bucket"
)

// The delays of the limiters. Those of exponential and of the bucket are the ones of
// workqueue.DefaultTypedControllerRateLimiter.
const (
	firstDelay   = 5 * time.Millisecond
	maxDelay     = 1000 * time.Second
	fastDelay    = time.Second
	slowDelay    = 10 * time.Second
	fastAttempts = 3
	bucketRate   = 10
	bucketBurst  = 100
)

// limiterKinds makes each limiter. A limiter that needs no bucket ignores it.
var limiterKinds = map[string]func(*rate.Limiter) workqueue.TypedRateLimiter[string]{
	maxOf: func(b *rate.Limiter) workqueue.TypedRateLimiter[string] {
		return workqueue.NewTypedMaxOfRateLimiter(
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstDelay, maxDelay),
			&workqueue.TypedBucketRateLimiter[string]{Limiter: b})
	},
	exponential: func(*rate.Limiter) workqueue.TypedRateLimiter[string] {
		return workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstDelay, maxDelay)
	},
	fastSlow: func(*rate.Limiter) workqueue.TypedRateLimiter[string] {
		return workqueue.NewTypedItemFastSlowRateLimiter[string](
			fastDelay, slowDelay, fastAttempts)
	},
	onlyBucket: func(b *rate.Limiter) workqueue.TypedRateLimiter[string] {
		return &workqueue.TypedBucketRateLimiter[string]{Limiter: b}
	},
}

// chosenLimiter is the limiter that the reader has chosen. A choice begins without failures, and
// with a full bucket; the keys that wait already keep their times.
type chosenLimiter struct {
	mu     sync.Mutex
	name   string
	now    workqueue.TypedRateLimiter[string]
	bucket *rate.Limiter // of now, or nil
	failed []string      // the keys that have failed, the newest first, at most maxRows
}

func newChosenLimiter() *chosenLimiter {
	l := &chosenLimiter{}
	_ = l.choose(maxOf)
	return l
}

// choose puts another limiter, or a new one of the same kind, in the place of the present one.
func (l *chosenLimiter) choose(name string) error {
	newLimiter, ok := limiterKinds[name]
	if !ok {
		return fmt.Errorf("limiter %q: want one of %v", printable.Short(name),
			slices.Sorted(maps.Keys(limiterKinds)))
	}
	bucket := rate.NewLimiter(bucketRate, bucketBurst)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.name, l.now, l.bucket, l.failed = name, newLimiter(bucket), nil, nil
	if name == maxOf || name == onlyBucket {
		l.bucket = bucket
	}
	return nil
}

// reset ends the reader's choice.
func (l *chosenLimiter) reset() {
	if l.chosen() != maxOf {
		_ = l.choose(maxOf)
	}
}

func (l *chosenLimiter) chosen() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.name
}

func (l *chosenLimiter) present() workqueue.TypedRateLimiter[string] {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now
}

// When counts a failure of key and returns how long it has to wait.
func (l *chosenLimiter) When(key string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	others := slices.DeleteFunc(l.failed, func(k string) bool { return k == key })
	l.failed = slices.Insert(others, 0, key)
	l.failed = l.failed[:min(len(l.failed), maxRows)]
	return l.now.When(key)
}

// Forget ends the count of key's failures.
func (l *chosenLimiter) Forget(key string) { l.present().Forget(key) }

// NumRequeues is the number of key's failures since the last Forget.
func (l *chosenLimiter) NumRequeues(key string) int { return l.present().NumRequeues(key) }

// Tracked is the number of keys that the limiter remembers.
func (l *chosenLimiter) Tracked() int {
	if t, ok := l.present().(workqueue.Tracker); ok {
		return t.Tracked()
	}
	return 0
}

// next returns the delay after one more failure. A bucket has no such delay: it depends on the
// other keys.
func (l *chosenLimiter) next(failures int) time.Duration {
	switch l.chosen() {
	case onlyBucket:
		return 0
	case fastSlow:
		if failures < fastAttempts {
			return fastDelay
		}
		return slowDelay
	}
	delay := firstDelay
	for range min(failures, 20) {
		delay *= 2
	}
	return min(delay, maxDelay)
}

// requeues describes the keys with failures that are not forgotten, the newest first.
func (l *chosenLimiter) requeues() []RequeueView {
	l.mu.Lock()
	keys, now := slices.Clone(l.failed), l.now
	l.mu.Unlock()
	views := []RequeueView{}
	for _, key := range keys {
		if n := now.NumRequeues(key); n > 0 {
			views = append(views,
				RequeueView{printable.Short(key), n, milliseconds(l.next(n))})
		}
	}
	return views
}

// bucketView describes the bucket of the limiter, if it has one.
func (l *chosenLimiter) bucketView(now time.Time) BucketView {
	l.mu.Lock()
	bucket := l.bucket
	l.mu.Unlock()
	if bucket == nil {
		return BucketView{}
	}
	return BucketView{
		Tokens: math.Floor(bucket.TokensAt(now)), Burst: bucket.Burst(),
		PerSecond: float64(bucket.Limit()),
	}
}
