// SPDX-License-Identifier: Apache-2.0

// Package workqueue has client-go's names for the queues of this module: a program that imports it in place of
// k8s.io/client-go/util/workqueue is otherwise unchanged.
//
//	informer -> handlers -> [workqueue] -> controller workers
//
// A name here is an alias of the same name in example.com/informerstack/workqueue, or a function that calls the one there:
// read that package for what the queues do. Only here are SetProvider and the metrics provider of the process (provider.go),
// the config structs that have other fields there, and the names from before type parameters (legacy.go).
//
// Read queue.go, delaying.go, ratelimiting.go, limiter.go, parallelize.go; provider.go; legacy.go. Then
// go test -v ./compat/workqueue. Goroutines: those of the queues. Locking: none; the provider is set once, atomically.
//
// Source: util/workqueue/queue.go TypedInterface, util/workqueue/delaying_queue.go TypedDelayingQueueConfig,
// util/workqueue/rate_limiting_queue.go TypedRateLimitingQueueConfig, util/workqueue/metrics.go SetProvider
package workqueue

import "example.com/informerstack/workqueue"

// TypedInterface is a queue of work that never hands an item to two workers at once.
type TypedInterface[T comparable] = workqueue.TypedInterface[T]

// Typed is the queue of items to work on now.
type Typed[T comparable] = workqueue.Typed[T]

// Queue is the order in which queued items are handed out.
type Queue[T comparable] = workqueue.Queue[T]

// TypedQueueConfig is what NewTypedWithConfig can be told. Without a MetricsProvider, that of SetProvider counts.
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
