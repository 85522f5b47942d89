// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"time"

	"k8s.io/utils/clock"
)

// Interface is a queue of items of any type that can be a map key.
//
// Deprecated: use TypedInterface.
type Interface TypedInterface[any]

// DelayingInterface is a queue of any items, which can join later.
//
// Deprecated: use TypedDelayingInterface.
type DelayingInterface TypedDelayingInterface[any]

// RateLimitingInterface is a queue of any items, which asks a RateLimiter how long they have to
// wait.
//
// Deprecated: use TypedRateLimitingInterface.
type RateLimitingInterface TypedRateLimitingInterface[any]

// RateLimiter decides how long any item that failed has to wait.
//
// Deprecated: use TypedRateLimiter.
type RateLimiter TypedRateLimiter[any]

// The types with type parameters, for any item.
//
// Deprecated: use those.
type (
	Type                              = Typed[any]
	QueueConfig                       = TypedQueueConfig[any]
	DelayingQueueConfig               = TypedDelayingQueueConfig[any]
	RateLimitingQueueConfig           = TypedRateLimitingQueueConfig[any]
	BucketRateLimiter                 = TypedBucketRateLimiter[any]
	ItemExponentialFailureRateLimiter = TypedItemExponentialFailureRateLimiter[any]
	ItemFastSlowRateLimiter           = TypedItemFastSlowRateLimiter[any]
	MaxOfRateLimiter                  = TypedMaxOfRateLimiter[any]
	WithMaxWaitRateLimiter            = TypedWithMaxWaitRateLimiter[any]
)

// New makes a FIFO queue without metrics.
//
// Deprecated: use NewTyped.
func New() *Type {
	return NewTyped[any]()
}

// NewNamed makes a FIFO queue with metrics, if SetProvider was called.
//
// Deprecated: use NewTypedWithConfig.
func NewNamed(name string) *Type {
	return NewTypedWithConfig(QueueConfig{Name: name})
}

// NewWithConfig makes a queue.
//
// Deprecated: use NewTypedWithConfig.
func NewWithConfig(config QueueConfig) *Type {
	return NewTypedWithConfig(config)
}

// NewDelayingQueue makes a delaying FIFO queue without metrics.
//
// Deprecated: use NewTypedDelayingQueue.
func NewDelayingQueue() DelayingInterface {
	return NewTypedDelayingQueue[any]()
}

// NewDelayingQueueWithConfig makes a delaying queue.
//
// Deprecated: use NewTypedDelayingQueueWithConfig.
func NewDelayingQueueWithConfig(config DelayingQueueConfig) DelayingInterface {
	return NewTypedDelayingQueueWithConfig(config)
}

// NewDelayingQueueWithCustomQueue makes a delaying queue around q. The name is for the count of
// retries; other metrics are q's own.
//
// Deprecated: use NewTypedDelayingQueueWithConfig.
func NewDelayingQueueWithCustomQueue(q Interface, name string) DelayingInterface {
	return NewTypedDelayingQueueWithConfig(DelayingQueueConfig{Name: name, Queue: q})
}

// NewNamedDelayingQueue makes a delaying FIFO queue with metrics, if SetProvider was called.
//
// Deprecated: use NewTypedDelayingQueueWithConfig.
func NewNamedDelayingQueue(name string) DelayingInterface {
	return NewTypedDelayingQueueWithConfig(DelayingQueueConfig{Name: name})
}

// NewDelayingQueueWithCustomClock makes a delaying FIFO queue. The clock decides when an item is
// due.
//
// Deprecated: use NewTypedDelayingQueueWithConfig.
func NewDelayingQueueWithCustomClock(clock clock.WithTicker, name string) DelayingInterface {
	return NewTypedDelayingQueueWithConfig(DelayingQueueConfig{Name: name, Clock: clock})
}

// NewRateLimitingQueue makes a rate-limiting FIFO queue without metrics.
//
// Deprecated: use NewTypedRateLimitingQueue.
func NewRateLimitingQueue(rateLimiter RateLimiter) RateLimitingInterface {
	return NewTypedRateLimitingQueue[any](rateLimiter)
}

// NewRateLimitingQueueWithConfig makes a rate-limiting queue.
//
// Deprecated: use NewTypedRateLimitingQueueWithConfig.
func NewRateLimitingQueueWithConfig(
	rateLimiter RateLimiter,
	config RateLimitingQueueConfig,
) RateLimitingInterface {
	return NewTypedRateLimitingQueueWithConfig(rateLimiter, config)
}

// NewNamedRateLimitingQueue makes a rate-limiting FIFO queue with metrics, if SetProvider was
// called.
//
// Deprecated: use NewTypedRateLimitingQueueWithConfig.
func NewNamedRateLimitingQueue(rateLimiter RateLimiter, name string) RateLimitingInterface {
	return NewTypedRateLimitingQueueWithConfig(rateLimiter, RateLimitingQueueConfig{Name: name})
}

// NewRateLimitingQueueWithDelayingInterface makes a rate-limiting queue around di.
//
// Deprecated: use NewTypedRateLimitingQueueWithConfig.
func NewRateLimitingQueueWithDelayingInterface(
	di DelayingInterface,
	rateLimiter RateLimiter,
) RateLimitingInterface {
	return NewTypedRateLimitingQueueWithConfig(
		rateLimiter,
		RateLimitingQueueConfig{DelayingQueue: di},
	)
}

// DefaultControllerRateLimiter is DefaultTypedControllerRateLimiter for any item.
//
// Deprecated: use that.
func DefaultControllerRateLimiter() RateLimiter {
	return DefaultTypedControllerRateLimiter[any]()
}

// DefaultItemBasedRateLimiter is DefaultTypedItemBasedRateLimiter for any item.
//
// Deprecated: use that.
func DefaultItemBasedRateLimiter() RateLimiter {
	return DefaultTypedItemBasedRateLimiter[any]()
}

// NewItemExponentialFailureRateLimiter is NewTypedItemExponentialFailureRateLimiter for any item.
//
// Deprecated: use that.
func NewItemExponentialFailureRateLimiter(baseDelay, maxDelay time.Duration) RateLimiter {
	return NewTypedItemExponentialFailureRateLimiter[any](baseDelay, maxDelay)
}

// NewItemFastSlowRateLimiter is NewTypedItemFastSlowRateLimiter for any item.
//
// Deprecated: use that.
func NewItemFastSlowRateLimiter(
	fastDelay, slowDelay time.Duration,
	maxFastAttempts int,
) RateLimiter {
	return NewTypedItemFastSlowRateLimiter[any](fastDelay, slowDelay, maxFastAttempts)
}

// NewMaxOfRateLimiter is NewTypedMaxOfRateLimiter for any item.
//
// Deprecated: use that.
func NewMaxOfRateLimiter(limiters ...TypedRateLimiter[any]) RateLimiter {
	return NewTypedMaxOfRateLimiter(limiters...)
}

// NewWithMaxWaitRateLimiter is NewTypedWithMaxWaitRateLimiter for any item.
//
// Deprecated: use that.
func NewWithMaxWaitRateLimiter(limiter RateLimiter, maxDelay time.Duration) RateLimiter {
	return NewTypedWithMaxWaitRateLimiter[any](limiter, maxDelay)
}
