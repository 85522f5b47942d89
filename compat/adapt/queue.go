// SPDX-License-Identifier: Apache-2.0

package adapt

import (
	"k8s.io/client-go/util/workqueue"

	compat "example.com/informerstack/compat/workqueue"
)

// NewQueue returns a rate-limiting queue of ours, for controller-runtime's
// controller.Options.NewQueue. Its metrics are those of the provider of compat/workqueue's
// SetProvider, if there is one. The provider that controller-runtime sets for client-go is not
// available to other packages. For a queue with further options, write a function that calls
// workqueue.NewTypedRateLimitingQueueWithConfig of this module: its result needs no adapter.
//
// Source: util/workqueue/rate_limiting_queue.go NewTypedRateLimitingQueueWithConfig
func NewQueue[T comparable](
	name string, rateLimiter workqueue.TypedRateLimiter[T],
) workqueue.TypedRateLimitingInterface[T] {
	return compat.NewTypedRateLimitingQueueWithConfig(rateLimiter,
		compat.TypedRateLimitingQueueConfig[T]{Name: name})
}
