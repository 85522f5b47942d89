// SPDX-License-Identifier: Apache-2.0

// Package workqueue has client-go's names for the queues of this module: a program that imports it
// in place of k8s.io/client-go/util/workqueue needs no other change.
//
//	informer -> handlers -> [workqueue] -> controller workers
//
// A name is an alias of the same name in example.com/informerstack/workqueue, or a function that
// calls the one there. Read that package for the queues themselves. This one adds SetProvider, the
// configs with client-go's fields, and the names from before type parameters.
//
// To read it, start with queue.go, then limiter.go, parallelize.go, metrics.go and legacy.go. Then
// run go test -v ./compat/workqueue. Goroutines: those of the queues. Locking: none; the provider
// is atomic.
//
// Source: util/workqueue/queue.go TypedInterface,
// util/workqueue/delaying_queue.go TypedDelayingQueueConfig,
// util/workqueue/rate_limiting_queue.go TypedRateLimitingQueueConfig,
// util/workqueue/metrics.go SetProvider
package workqueue

import (
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"example.com/informerstack/workqueue"
)

// TypedInterface is a queue of work that never hands an item to two workers at once.
type TypedInterface[T comparable] = workqueue.TypedInterface[T]

// Typed is the queue of items to work on now.
type Typed[T comparable] = workqueue.Typed[T]

// Queue is the order in which queued items are handed out.
type Queue[T comparable] = workqueue.Queue[T]

// TypedQueueConfig is what NewTypedWithConfig can be told. Without a MetricsProvider, that of
// SetProvider counts.
type TypedQueueConfig[T comparable] = workqueue.TypedQueueConfig[T]

// DefaultQueue makes a first-in-first-out order.
func DefaultQueue[T comparable]() Queue[T] {
	return workqueue.DefaultQueue[T]()
}

// NewTyped makes a FIFO queue without metrics.
func NewTyped[T comparable]() *Typed[T] {
	return NewTypedWithConfig(TypedQueueConfig[T]{})
}

// NewTypedWithConfig makes a queue.
func NewTypedWithConfig[T comparable](config TypedQueueConfig[T]) *Typed[T] {
	config.MetricsProvider = orGlobal(config.MetricsProvider)
	return workqueue.NewTypedWithConfig(config)
}

// TypedDelayingInterface is a queue that an item can join later.
type TypedDelayingInterface[T comparable] = workqueue.TypedDelayingInterface[T]

// TypedDelayingQueueConfig is what NewTypedDelayingQueueWithConfig can be told. The zero value is a
// delaying FIFO queue without metrics.
type TypedDelayingQueueConfig[T comparable] struct {
	// Logger is told when Queue panics as an item joins it. nil: klog's.
	Logger *klog.Logger
	// Name of the queue in its metrics. Without a name there are none.
	Name string
	// MetricsProvider makes the queue's metrics. nil: that of SetProvider.
	MetricsProvider MetricsProvider
	// Clock tells when an item is due. nil: the real one.
	Clock clock.WithTicker
	// Queue is the queue that items join. nil: a new Typed.
	Queue TypedInterface[T]
}

// NewTypedDelayingQueue makes a delaying FIFO queue without metrics.
func NewTypedDelayingQueue[T comparable]() TypedDelayingInterface[T] {
	return NewTypedDelayingQueueWithConfig(TypedDelayingQueueConfig[T]{})
}

// TypedNewDelayingQueue is NewTypedDelayingQueue.
//
// Deprecated: use NewTypedDelayingQueue.
func TypedNewDelayingQueue[T comparable]() TypedDelayingInterface[T] {
	return NewTypedDelayingQueue[T]()
}

// NewTypedDelayingQueueWithConfig makes a delaying queue.
func NewTypedDelayingQueueWithConfig[T comparable](config TypedDelayingQueueConfig[T]) TypedDelayingInterface[T] {
	return workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[T]{
		Logger:          config.Logger,
		Name:            config.Name,
		MetricsProvider: orGlobal(config.MetricsProvider),
		Clock:           config.Clock,
		Queue:           config.Queue,
	})
}

// TypedRateLimitingInterface is a queue that asks a TypedRateLimiter how long an item has to wait.
type TypedRateLimitingInterface[T comparable] = workqueue.TypedRateLimitingInterface[T]

// TypedRateLimitingQueueConfig is what NewTypedRateLimitingQueueWithConfig can be told. The zero
// value is a FIFO queue without metrics.
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
