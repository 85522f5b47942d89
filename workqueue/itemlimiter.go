// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"math"
	"sync"
	"time"
)

// TypedItemExponentialFailureRateLimiter doubles an item's delay with each failure: baseDelay,
// 2*baseDelay, 4*baseDelay and so on up to maxDelay, without jitter.
//
// Call Forget for items that succeed. The limiter drops an item that is not forgotten 12 to 24
// hours after its last failure (2 to 4 times maxDelay if that is longer), or sooner when half a
// million other items have failed since.
type TypedItemExponentialFailureRateLimiter[T comparable] struct {
	baseDelay time.Duration
	maxDelay  time.Duration

	mu     sync.Mutex
	counts failures[T, int]
}

// NewTypedItemExponentialFailureRateLimiter returns a limiter that starts at baseDelay and doubles
// the delay up to maxDelay.
func NewTypedItemExponentialFailureRateLimiter[T comparable](
	baseDelay, maxDelay time.Duration,
) TypedRateLimiter[T] {
	return &TypedItemExponentialFailureRateLimiter[T]{
		baseDelay: baseDelay,
		maxDelay:  maxDelay,
		counts:    newFailures[T, int](maxDelay),
	}
}

// When counts a failure of item. It returns maxDelay once doubling would exceed that, however often
// item fails.
func (r *TypedItemExponentialFailureRateLimiter[T]) When(item T) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.counts.get(item)
	r.counts.put(item, before+1, time.Now())
	return double(r.baseDelay, before, r.maxDelay)
}

// double is base doubled n times, or longest if that is less. It does not overflow. A base that is
// not positive is not doubled.
func double(base time.Duration, n int, longest time.Duration) time.Duration {
	switch {
	case base <= 0:
		return min(base, longest)
	case n >= 63 || base > math.MaxInt64>>n:
		return longest
	}
	return min(base<<n, longest)
}

// NumRequeues is the number of item's failures since it was last forgotten.
func (r *TypedItemExponentialFailureRateLimiter[T]) NumRequeues(item T) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts.get(item)
}

// Forget lets item start at baseDelay again.
func (r *TypedItemExponentialFailureRateLimiter[T]) Forget(item T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.forget(item)
}

// Tracked is the number of items that the limiter remembers.
func (r *TypedItemExponentialFailureRateLimiter[T]) Tracked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts.len()
}

// TypedItemFastSlowRateLimiter returns fastDelay for an item's first failures and slowDelay after
// them.
//
// It drops items that are not forgotten as TypedItemExponentialFailureRateLimiter does, with the
// longer delay as maxDelay.
type TypedItemFastSlowRateLimiter[T comparable] struct {
	maxFastAttempts int
	fastDelay       time.Duration
	slowDelay       time.Duration

	mu     sync.Mutex
	counts failures[T, int]
}

// NewTypedItemFastSlowRateLimiter returns a limiter that returns fastDelay maxFastAttempts times,
// then slowDelay.
func NewTypedItemFastSlowRateLimiter[T comparable](
	fastDelay, slowDelay time.Duration, maxFastAttempts int,
) TypedRateLimiter[T] {
	return &TypedItemFastSlowRateLimiter[T]{
		maxFastAttempts: maxFastAttempts,
		fastDelay:       fastDelay,
		slowDelay:       slowDelay,
		counts:          newFailures[T, int](max(fastDelay, slowDelay)),
	}
}

// When counts a failure of item.
func (r *TypedItemFastSlowRateLimiter[T]) When(item T) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	count := r.counts.get(item) + 1
	r.counts.put(item, count, time.Now())
	if count <= r.maxFastAttempts {
		return r.fastDelay
	}
	return r.slowDelay
}

// NumRequeues is the number of item's failures since it was last forgotten.
func (r *TypedItemFastSlowRateLimiter[T]) NumRequeues(item T) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts.get(item)
}

// Forget gives item its fast attempts back.
func (r *TypedItemFastSlowRateLimiter[T]) Forget(item T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.counts.forget(item)
}

// Tracked is the number of items that the limiter remembers.
func (r *TypedItemFastSlowRateLimiter[T]) Tracked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.counts.len()
}
