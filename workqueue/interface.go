// SPDX-License-Identifier: Apache-2.0

// Package workqueue never hands one item to two workers at once.
//
//	informer -> handlers -> [workqueue] -> controller workers
//
// There are three queues, each built around the previous one: Typed holds items to work on now,
// TypedDelayingQueue adds items later, and TypedRateLimitingQueue asks a TypedRateLimiter how much
// later. One Config configures all three.
//
// To use it, see the Example of TypedRateLimitingQueue. Items are the same if they are ==: queue
// values, such as "namespace/name" or a struct of strings. Pointers to equal structs are two items.
//
// To read it, start with queue.go, which is the textbook; then delaying.go with waitheap.go,
// ratelimiting.go, errorlimiter.go, drain.go, metrics.go, snapshot.go and part.go. Then run
// go test -v -run Story ./workqueue.
//
// Goroutines: any number of adders and workers may call a queue. A Typed with Metrics.Unfinished
// runs one goroutine until ShutDown, and so does a TypedDelayingQueue with Metrics.Waiting. A
// TypedDelayingQueue runs a goroutine while due items are being added. With a Clock that has no
// AfterFunc, it runs another while items wait. Locking: Typed, TypedDelayingQueue and each limiter
// have one mutex. No two mutexes are locked at once. Config.Order and most Metrics are the only
// code of the caller that runs under a lock, as in client-go.
//
// Source: util/workqueue/queue.go Typed, util/workqueue/delaying_queue.go TypedDelayingInterface,
// util/workqueue/rate_limiting_queue.go TypedRateLimitingInterface
package workqueue

import (
	"context"
	"time"

	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
)

// TypedInterface is a queue of work that never hands an item to two workers at once. Every method
// is safe for concurrent use.
type TypedInterface[T comparable] interface {
	// Add asks for item to be worked on. An item that is queued already is not queued twice. An
	// item that a worker has is queued again when that worker calls Done. Add is ignored after
	// ShutDown.
	Add(item T)
	// Len is the number of queued items. It may be out of date when it returns: use it for reports,
	// not for decisions.
	Len() int
	// Get blocks until it can return an item, which is the caller's until Done. It returns shutdown
	// = true, and no item, once the queue is shut down and empty.
	Get() (item T, shutdown bool)
	// Done ends the work on an item from Get, whether it succeeded or failed. Without Done the item
	// is never handed out again.
	Done(item T)
	// ShutDown refuses new items. Workers still get the queued items, then shutdown = true.
	ShutDown()
	// ShutDownWithDrain is ShutDown, and waits for the workers to finish. Another ShutDown ends the
	// wait.
	ShutDownWithDrain()
	// ShuttingDown reports whether ShutDown or ShutDownWithDrain was called.
	ShuttingDown() bool
}

// TypedDelayingInterface is a queue that can add an item after a delay.
type TypedDelayingInterface[T comparable] interface {
	TypedInterface[T]
	// AddAfter adds item once duration has passed, or at once if duration is not positive.
	AddAfter(item T, duration time.Duration)
}

// TypedRateLimitingInterface is a queue that asks a TypedRateLimiter how long an item has to wait.
type TypedRateLimitingInterface[T comparable] interface {
	TypedDelayingInterface[T]
	// AddRateLimited adds item after the limiter's delay.
	AddRateLimited(item T)
	// Forget makes the limiter forget item's failures. It does not replace Done.
	Forget(item T)
	// NumRequeues is the number of item's failures that the limiter remembers.
	NumRequeues(item T) int
}

// ContextInterface has the methods of every queue of this package: client-go's and our own.
type ContextInterface[T comparable] interface {
	TypedInterface[T]
	// GetWithContext is Get for a worker that also stops when ctx ends: it then returns shutdown =
	// true. If ctx has ended and an item is queued, the item stays.
	GetWithContext(ctx context.Context) (item T, shutdown bool)
	// Snapshot copies the content of the queue, in time proportional to the content.
	Snapshot() Snapshot[T]
}

// ExtendedInterface has the methods of a TypedRateLimitingQueue: client-go's and our own. A queue
// that decorates one should implement it too: package controller looks for it.
type ExtendedInterface[T comparable] interface {
	ContextInterface[T]
	TypedRateLimitingInterface[T]
	// AddFailed is AddRateLimited for a caller that knows the error: an ErrorRateLimiter decides by
	// it.
	AddFailed(item T, err error)
	// CancelDelayed ends item's wait, and reports whether item waited.
	CancelDelayed(item T) bool
}

// Config configures the queues of this package. Its zero value makes a FIFO queue without metrics.
type Config[T comparable] struct {
	// Metrics are those of this queue: each queue needs its own.
	Metrics Metrics
	// Clock decides when an item is due, and measures for the metrics. Nil means the real clock.
	Clock clock.WithTicker
	// Order orders the items. Nil means first in, first out.
	Order Queue[T]
	// DrainProcessingOnly makes ShutDownWithDrain wait until no worker has an item, whether items
	// are queued or not, as client-go's does. By default it also waits until no item is queued,
	// which needs workers that call Get until it returns shutdown = true.
	DrainProcessingOnly bool

	// AddSupersedesDelayed makes Add, and AddAfter without a delay, cancel the item's wait, so that
	// the item is worked on once. This field and those below are for a TypedDelayingQueue and a
	// TypedRateLimitingQueue.
	AddSupersedesDelayed bool
	// Queue gets the items that are due, in place of a new Typed. Order and DrainProcessingOnly are
	// then not used. Only the Metrics Retries, Waiting and Released are.
	Queue ContextInterface[T]
	// Logger is for the report of a panic of Queue.Add. Nil means klog's.
	Logger *klog.Logger
}
