// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"example.com/informerstack/workqueue"
)

// TypedDelayingInterface is a queue that an item can join later.
type TypedDelayingInterface[T comparable] = workqueue.TypedDelayingInterface[T]

// TypedDelayingQueueConfig is what NewTypedDelayingQueueWithConfig can be told. The zero value is a delaying FIFO queue
// without metrics.
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
