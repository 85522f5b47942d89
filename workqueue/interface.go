// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"time"
)

// TypedInterface is a queue of work that never hands an item to two workers at once. Every method is safe for concurrent
// use.
type TypedInterface[T comparable] interface {
	// Add asks for item to be worked on. An item that is queued already is not queued twice; one that a worker has is
	// queued once more when that worker calls Done. Ignored after ShutDown.
	Add(item T)
	// Len is the number of items that wait for a worker. By the time it returns it may be wrong: report it, decide
	// nothing with it.
	Len() int
	// Get blocks until there is an item, which is then the caller's until Done, or until the queue is shut down and
	// empty: then shutdown is true and item means nothing.
	Get() (item T, shutdown bool)
	// Done says that the work on an item from Get has ended, well or badly. Without it the item is never handed out
	// again.
	Done(item T)
	// ShutDown refuses new items. Workers get what is queued, then shutdown = true.
	ShutDown()
	// ShutDownWithDrain is ShutDown, and waits for the workers to finish. ShutDown ends the wait.
	ShutDownWithDrain()
	// ShuttingDown reports whether ShutDown or ShutDownWithDrain was called.
	ShuttingDown() bool
}

// TypedDelayingInterface is a queue that an item can join later.
type TypedDelayingInterface[T comparable] interface {
	TypedInterface[T]
	// AddAfter adds item once duration has passed; at once if it is not positive.
	AddAfter(item T, duration time.Duration)
}

// TypedRateLimitingInterface is a queue that asks a TypedRateLimiter how long an item has to wait.
type TypedRateLimitingInterface[T comparable] interface {
	TypedDelayingInterface[T]
	// AddRateLimited adds item after the delay that the limiter answers.
	AddRateLimited(item T)
	// Forget makes the limiter forget item's failures. It does not replace Done.
	Forget(item T)
	// NumRequeues is how many failures of item the limiter remembers.
	NumRequeues(item T) int
}

// Queue is the order in which queued items are handed out. The workqueue calls it under its lock, so that an
// implementation needs no lock of its own and must not call the workqueue.
type Queue[T comparable] interface {
	// Touch says that an item that is in the queue was added again.
	Touch(item T)
	// Push puts in an item that is not in the queue.
	Push(item T)
	// Len is the number of items in the queue.
	Len() int
	// Pop takes out the next item. It is called only if Len is positive.
	Pop() (item T)
}
