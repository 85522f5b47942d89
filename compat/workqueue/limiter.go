// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"time"

	"example.com/informerstack/workqueue"
)

// TypedRateLimiter decides how long an item that failed has to wait.
type TypedRateLimiter[T comparable] = workqueue.TypedRateLimiter[T]

// TypedBucketRateLimiter is one token bucket for all items.
type TypedBucketRateLimiter[T comparable] = workqueue.TypedBucketRateLimiter[T]

// TypedItemExponentialFailureRateLimiter doubles an item's delay with each failure.
type TypedItemExponentialFailureRateLimiter[
	T comparable,
] = workqueue.TypedItemExponentialFailureRateLimiter[T]

// TypedItemFastSlowRateLimiter has one delay for an item's first failures and another for all that
// follow.
type TypedItemFastSlowRateLimiter[T comparable] = workqueue.TypedItemFastSlowRateLimiter[T]

// TypedMaxOfRateLimiter asks all of its limiters and answers the longest delay.
type TypedMaxOfRateLimiter[T comparable] = workqueue.TypedMaxOfRateLimiter[T]

// TypedWithMaxWaitRateLimiter answers what another limiter answers, but no longer than a maximum.
type TypedWithMaxWaitRateLimiter[T comparable] = workqueue.TypedWithMaxWaitRateLimiter[T]

// DefaultTypedControllerRateLimiter is 5 ms doubling to 1000 s for each item, and no more than 10
// retries a second (100 at once) for all of them.
func DefaultTypedControllerRateLimiter[T comparable]() TypedRateLimiter[T] {
	return workqueue.DefaultTypedControllerRateLimiter[T]()
}

// DefaultTypedItemBasedRateLimiter is 1 ms doubling to 1000 s for each item.
func DefaultTypedItemBasedRateLimiter[T comparable]() TypedRateLimiter[T] {
	return workqueue.DefaultTypedItemBasedRateLimiter[T]()
}

// NewTypedItemExponentialFailureRateLimiter starts at baseDelay and doubles to maxDelay.
func NewTypedItemExponentialFailureRateLimiter[T comparable](
	baseDelay, maxDelay time.Duration,
) TypedRateLimiter[T] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[T](baseDelay, maxDelay)
}

// NewTypedItemFastSlowRateLimiter answers fastDelay maxFastAttempts times, then slowDelay.
func NewTypedItemFastSlowRateLimiter[T comparable](
	fastDelay, slowDelay time.Duration, maxFastAttempts int,
) TypedRateLimiter[T] {
	return workqueue.NewTypedItemFastSlowRateLimiter[T](fastDelay, slowDelay, maxFastAttempts)
}

// NewTypedMaxOfRateLimiter combines limiters.
func NewTypedMaxOfRateLimiter[T comparable](limiters ...TypedRateLimiter[T]) TypedRateLimiter[T] {
	return workqueue.NewTypedMaxOfRateLimiter(limiters...)
}

// NewTypedWithMaxWaitRateLimiter caps the delays of limiter at maxDelay.
func NewTypedWithMaxWaitRateLimiter[T comparable](
	limiter TypedRateLimiter[T], maxDelay time.Duration,
) TypedRateLimiter[T] {
	return workqueue.NewTypedWithMaxWaitRateLimiter(limiter, maxDelay)
}
