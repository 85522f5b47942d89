// SPDX-License-Identifier: Apache-2.0

package workqueue

import "time"

// TypedRateLimiter decides how long an item that failed has to wait. Every method is safe for concurrent use and none
// blocks.
type TypedRateLimiter[T comparable] interface {
	// When counts a failure of item and returns how long it has to wait.
	When(item T) time.Duration
	// Forget ends the counting: item succeeded, or was given up.
	Forget(item T)
	// NumRequeues is how many failures of item are counted.
	NumRequeues(item T) int
}

// ErrorRateLimiter is a limiter that decides by the error.
type ErrorRateLimiter[T comparable] interface {
	TypedRateLimiter[T]
	// WhenError counts a failure of item and returns how long it has to wait after err.
	WhenError(item T, err error) time.Duration
}

// Tracker is a limiter that remembers items.
type Tracker interface {
	// Tracked is how many items the limiter remembers.
	Tracked() int
}

func whenError[T comparable](limiter TypedRateLimiter[T], item T, err error) time.Duration {
	if l, ok := limiter.(ErrorRateLimiter[T]); ok {
		return l.WhenError(item, err)
	}
	return limiter.When(item)
}

func tracked[T comparable](limiter TypedRateLimiter[T]) int {
	if t, ok := limiter.(Tracker); ok {
		return t.Tracked()
	}
	return 0
}

// DefaultTypedControllerRateLimiter is what a controller wants if it does not know better: 5 ms doubling to 1000 s for
// each item, and no more than 10 retries a second (100 at once) for all of them.
func DefaultTypedControllerRateLimiter[T comparable]() TypedRateLimiter[T] {
	return NewTypedMaxOfRateLimiter(
		NewTypedItemExponentialFailureRateLimiter[T](5*time.Millisecond, 1000*time.Second),
		NewTypedBucketRateLimiter[T](10, 100),
	)
}

// DefaultTypedItemBasedRateLimiter is 1 ms doubling to 1000 s for each item.
func DefaultTypedItemBasedRateLimiter[T comparable]() TypedRateLimiter[T] {
	return NewTypedItemExponentialFailureRateLimiter[T](time.Millisecond, 1000*time.Second)
}

// TypedMaxOfRateLimiter asks all of its limiters and answers the longest delay. Each of them counts the failure, so that a
// token bucket among them gives a token even when another decides.
type TypedMaxOfRateLimiter[T comparable] struct {
	limiters []TypedRateLimiter[T]
}

// NewTypedMaxOfRateLimiter combines limiters. Without any there is no delay.
func NewTypedMaxOfRateLimiter[T comparable](limiters ...TypedRateLimiter[T]) TypedRateLimiter[T] {
	return &TypedMaxOfRateLimiter[T]{limiters: limiters}
}

// When is the longest delay that one of the limiters wants.
func (r *TypedMaxOfRateLimiter[T]) When(item T) time.Duration {
	var longest time.Duration
	for _, limiter := range r.limiters {
		longest = max(longest, limiter.When(item))
	}
	return longest
}

// WhenError is When; limiters that decide by the error are told it.
func (r *TypedMaxOfRateLimiter[T]) WhenError(item T, err error) time.Duration {
	var longest time.Duration
	for _, limiter := range r.limiters {
		longest = max(longest, whenError(limiter, item, err))
	}
	return longest
}

// Forget makes every limiter forget item.
func (r *TypedMaxOfRateLimiter[T]) Forget(item T) {
	for _, limiter := range r.limiters {
		limiter.Forget(item)
	}
}

// NumRequeues is the highest count among the limiters.
func (r *TypedMaxOfRateLimiter[T]) NumRequeues(item T) int {
	highest := 0
	for _, limiter := range r.limiters {
		highest = max(highest, limiter.NumRequeues(item))
	}
	return highest
}

// Tracked is how many items the limiter that remembers most remembers.
func (r *TypedMaxOfRateLimiter[T]) Tracked() int {
	most := 0
	for _, limiter := range r.limiters {
		most = max(most, tracked(limiter))
	}
	return most
}

// TypedWithMaxWaitRateLimiter answers what another limiter answers, but no longer than a maximum.
type TypedWithMaxWaitRateLimiter[T comparable] struct {
	limiter  TypedRateLimiter[T]
	maxDelay time.Duration
}

// NewTypedWithMaxWaitRateLimiter caps the delays of limiter at maxDelay.
func NewTypedWithMaxWaitRateLimiter[T comparable](
	limiter TypedRateLimiter[T], maxDelay time.Duration,
) TypedRateLimiter[T] {
	return &TypedWithMaxWaitRateLimiter[T]{limiter: limiter, maxDelay: maxDelay}
}

// When is the limiter's delay, or the maximum.
func (w TypedWithMaxWaitRateLimiter[T]) When(item T) time.Duration {
	return min(w.limiter.When(item), w.maxDelay)
}

// WhenError is When; a limiter that decides by the error is told it.
func (w TypedWithMaxWaitRateLimiter[T]) WhenError(item T, err error) time.Duration {
	return min(whenError(w.limiter, item, err), w.maxDelay)
}

// Forget makes the limiter forget item.
func (w TypedWithMaxWaitRateLimiter[T]) Forget(item T) {
	w.limiter.Forget(item)
}

// NumRequeues is the limiter's count.
func (w TypedWithMaxWaitRateLimiter[T]) NumRequeues(item T) int {
	return w.limiter.NumRequeues(item)
}

// Tracked is how many items the limiter remembers.
func (w TypedWithMaxWaitRateLimiter[T]) Tracked() int {
	return tracked(w.limiter)
}
