// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"k8s.io/utils/clock"

	"example.com/informerstack/workqueue"
)

// TypedRateLimitingInterface is a queue that asks a TypedRateLimiter how long an item has to wait.
type TypedRateLimitingInterface[T comparable] = workqueue.TypedRateLimitingInterface[T]

// TypedRateLimitingQueueConfig is what NewTypedRateLimitingQueueWithConfig can be told. The zero value is a FIFO queue
// without metrics.
type TypedRateLimitingQueueConfig[T comparable] struct {
	// Name of the queue in its metrics. Without a name there are none.
	Name string
	// MetricsProvider makes the queue's metrics. nil: that of SetProvider.
	MetricsProvider MetricsProvider
	// Clock tells when an item is due. nil: the real one.
	Clock clock.WithTicker
	// DelayingQueue is the queue that items join. nil: a new one as the other fields say.
	DelayingQueue TypedDelayingInterface[T]
}

// NewTypedRateLimitingQueue makes a rate-limiting FIFO queue without metrics.
func NewTypedRateLimitingQueue[T comparable](rateLimiter TypedRateLimiter[T]) TypedRateLimitingInterface[T] {
	return NewTypedRateLimitingQueueWithConfig(rateLimiter, TypedRateLimitingQueueConfig[T]{})
}

// NewTypedRateLimitingQueueWithConfig makes a rate-limiting queue.
func NewTypedRateLimitingQueueWithConfig[T comparable](
	rateLimiter TypedRateLimiter[T], config TypedRateLimitingQueueConfig[T],
) TypedRateLimitingInterface[T] {
	return workqueue.NewTypedRateLimitingQueueWithConfig(rateLimiter, workqueue.TypedRateLimitingQueueConfig[T]{
		Name:            config.Name,
		MetricsProvider: orGlobal(config.MetricsProvider),
		Clock:           config.Clock,
		DelayingQueue:   config.DelayingQueue,
	})
}
