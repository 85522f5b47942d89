// SPDX-License-Identifier: Apache-2.0

// Package workqueue has client-go's names for the queues of this module. A program that imports it
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
	"context"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"example.com/informerstack/compat/internal/found"
	"example.com/informerstack/compat/internal/provider"
	"example.com/informerstack/internal/helpers/callsite"
	"example.com/informerstack/observe/journal"
	"example.com/informerstack/workqueue"
)

// TypedInterface is a queue of work that never hands an item to two workers at once.
type TypedInterface[T comparable] = workqueue.TypedInterface[T]

// Typed is the queue of items to work on now.
type Typed[T comparable] = workqueue.Typed[T]

// Queue orders the queued items.
type Queue[T comparable] = workqueue.Queue[T]

// TypedQueueConfig configures NewTypedWithConfig. The zero value makes a FIFO queue without
// metrics.
type TypedQueueConfig[T comparable] struct {
	// Name of the queue in its metrics. A queue without a name has no metrics.
	Name string
	// MetricsProvider makes the queue's metrics. Nil means that of SetProvider.
	MetricsProvider MetricsProvider
	// Clock measures for the metrics. Nil means the real clock.
	Clock clock.WithTicker
	// Queue orders the items. Nil means first in, first out.
	Queue Queue[T]
}

// DefaultQueue returns the order first in, first out.
func DefaultQueue[T comparable]() Queue[T] {
	return workqueue.DefaultQueue[T]()
}

// NewTyped returns a FIFO queue without metrics.
func NewTyped[T comparable]() *Typed[T] {
	return NewTypedWithConfig(TypedQueueConfig[T]{})
}

// NewTypedWithConfig returns a queue. Its ShutDownWithDrain waits for the items that workers have,
// but not for queued ones: a program may drain a queue that has no worker.
func NewTypedWithConfig[T comparable](config TypedQueueConfig[T]) *Typed[T] {
	return shown[T](shownName(config.Name), newTyped(config))
}

func newTyped[T comparable](config TypedQueueConfig[T]) *Typed[T] {
	return workqueue.NewTyped(workqueue.Config[T]{
		Metrics:             provider.Queue(config.MetricsProvider, config.Name),
		Clock:               config.Clock,
		Order:               config.Queue,
		DrainProcessingOnly: true,
	})
}

// TypedDelayingInterface is a queue that can add an item after a delay.
type TypedDelayingInterface[T comparable] = workqueue.TypedDelayingInterface[T]

// TypedDelayingQueueConfig configures NewTypedDelayingQueueWithConfig. The zero value makes a
// delaying FIFO queue without metrics.
type TypedDelayingQueueConfig[T comparable] struct {
	// Logger is for the report of a panic of Queue.Add. Nil means klog's.
	Logger *klog.Logger
	// Name of the queue in its metrics. A queue without a name has no metrics.
	Name string
	// MetricsProvider makes the queue's metrics. Nil means that of SetProvider.
	MetricsProvider MetricsProvider
	// Clock decides when an item is due. Nil means the real clock.
	Clock clock.WithTicker
	// Queue gets the items that are due. Nil means a new Typed.
	Queue TypedInterface[T]
}

// NewTypedDelayingQueue returns a delaying FIFO queue without metrics.
func NewTypedDelayingQueue[T comparable]() TypedDelayingInterface[T] {
	return NewTypedDelayingQueueWithConfig(TypedDelayingQueueConfig[T]{})
}

// TypedNewDelayingQueue is NewTypedDelayingQueue.
//
// Deprecated: use NewTypedDelayingQueue.
func TypedNewDelayingQueue[T comparable]() TypedDelayingInterface[T] {
	return NewTypedDelayingQueue[T]()
}

// NewTypedDelayingQueueWithConfig returns a delaying queue. It registers a ticker with a Clock that
// it is given: tests wait until a fake clock has waiters.
func NewTypedDelayingQueueWithConfig[T comparable](
	config TypedDelayingQueueConfig[T],
) TypedDelayingInterface[T] {
	queue := workqueue.NewTypedDelayingQueue(delaying(config))
	if j := found.Journal(); j != nil {
		name := shownName(config.Name)
		return shown[T](name, journal.NewDelayingQueue(j, name, queue))
	}
	return queue
}

// delaying registers a ticker with config's Clock, which the queue stops when it is shut down.
func delaying[T comparable](config TypedDelayingQueueConfig[T]) workqueue.Config[T] {
	if config.Queue == nil {
		config.Queue = newTyped(TypedQueueConfig[T]{
			Name:            config.Name,
			MetricsProvider: config.MetricsProvider,
			Clock:           config.Clock,
		})
	}
	metrics := provider.Delays(config.MetricsProvider, config.Name)
	if config.Clock != nil {
		metrics.Released = config.Clock.NewTicker(heartbeat).Stop
	}
	queue, ok := config.Queue.(workqueue.ContextInterface[T])
	if !ok {
		queue = contextQueue[T]{config.Queue}
	}
	return workqueue.Config[T]{
		Metrics: metrics, Clock: config.Clock, Logger: config.Logger, Queue: queue}
}

// heartbeat is the period of the ticker that a delaying queue of client-go reads.
const heartbeat = 10 * time.Second

// contextQueue is a queue of client-go's interface alone: ctx is checked only before the wait, and
// its content is not known.
type contextQueue[T comparable] struct{ TypedInterface[T] }

// GetWithContext implements workqueue.ContextInterface.
func (q contextQueue[T]) GetWithContext(ctx context.Context) (item T, shutdown bool) {
	if ctx.Err() != nil {
		return item, true
	}
	return q.Get()
}

// Snapshot implements workqueue.ContextInterface.
func (q contextQueue[T]) Snapshot() workqueue.Snapshot[T] { return workqueue.Snapshot[T]{} }

// TypedRateLimitingInterface is a queue that asks a TypedRateLimiter how long an item has to wait.
type TypedRateLimitingInterface[T comparable] = workqueue.TypedRateLimitingInterface[T]

// TypedRateLimitingQueueConfig configures NewTypedRateLimitingQueueWithConfig. The zero value makes
// a FIFO queue without metrics.
type TypedRateLimitingQueueConfig[T comparable] struct {
	// Logger is the delaying queue's, as in client-go v0.38. Nil means klog's.
	Logger *klog.Logger
	// Name of the queue in its metrics. A queue without a name has no metrics.
	Name string
	// MetricsProvider makes the queue's metrics. Nil means that of SetProvider.
	MetricsProvider MetricsProvider
	// Clock decides when an item is due. Nil means the real clock.
	Clock clock.WithTicker
	// DelayingQueue gets the items. Nil means a new queue, configured by the other fields.
	DelayingQueue TypedDelayingInterface[T]
}

// NewTypedRateLimitingQueue returns a rate-limiting FIFO queue without metrics.
func NewTypedRateLimitingQueue[T comparable](
	rateLimiter TypedRateLimiter[T],
) TypedRateLimitingInterface[T] {
	return NewTypedRateLimitingQueueWithConfig(rateLimiter, TypedRateLimitingQueueConfig[T]{})
}

// NewTypedRateLimitingQueueWithConfig returns a rate-limiting queue.
func NewTypedRateLimitingQueueWithConfig[T comparable](
	rateLimiter TypedRateLimiter[T], config TypedRateLimitingQueueConfig[T],
) TypedRateLimitingInterface[T] {
	if config.DelayingQueue != nil {
		return rateLimitingQueue[T]{config.DelayingQueue, rateLimiter}
	}
	queue := workqueue.NewTypedRateLimitingQueue(rateLimiter, delaying(TypedDelayingQueueConfig[T]{
		Logger:          config.Logger,
		Name:            config.Name,
		MetricsProvider: config.MetricsProvider,
		Clock:           config.Clock,
	}))
	if j := found.Journal(); j != nil {
		name := shownName(config.Name)
		return shown[T](name, journal.NewRateLimitingQueue(j, name, queue))
	}
	return queue
}

// shown shows a new queue to package devtools, if the program has it.
func shown[T comparable, Q any, P interface {
	*Q
	Snapshot() workqueue.Snapshot[T]
}](name string, queue P) P {
	found.AddQueue[T](name, queue)
	return queue
}

// shownName returns the name of a queue that is shown. One without a name has that of the function
// that made it, and from the second on a number.
func shownName(name string) string {
	if name == "" && found.Journal() != nil {
		return found.TakeName(callsite.Function("workqueue"))
	}
	return name
}

// rateLimitingQueue is a rate-limiting queue around an owner's delaying queue. It has the methods
// of client-go's interface alone.
type rateLimitingQueue[T comparable] struct {
	TypedDelayingInterface[T]
	limiter TypedRateLimiter[T]
}

// AddRateLimited implements TypedRateLimitingInterface.
func (q rateLimitingQueue[T]) AddRateLimited(item T) { q.AddAfter(item, q.limiter.When(item)) }

// Forget implements TypedRateLimitingInterface.
func (q rateLimitingQueue[T]) Forget(item T) { q.limiter.Forget(item) }

// NumRequeues implements TypedRateLimitingInterface.
func (q rateLimitingQueue[T]) NumRequeues(item T) int { return q.limiter.NumRequeues(item) }
