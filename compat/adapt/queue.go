// SPDX-License-Identifier: Apache-2.0

package adapt

import (
	"k8s.io/client-go/util/workqueue"

	compat "example.com/informerstack/compat/workqueue"
)

// NewQueue returns a rate-limiting queue of ours, for controller-runtime's controller.Options.NewQueue. Its metrics are made
// by the provider of compat/workqueue's SetProvider, if there is one; client-go's, which controller-runtime sets, is not
// known to anybody else. Where more is asked of a queue, a function that calls
// workqueue.NewTypedRateLimitingQueueWithConfig of this module takes the place of this one: nothing needs an adapter.
//
// Source: util/workqueue/rate_limiting_queue.go NewTypedRateLimitingQueueWithConfig
func NewQueue[T comparable](name string, rateLimiter workqueue.TypedRateLimiter[T]) workqueue.TypedRateLimitingInterface[T] {
	return compat.NewTypedRateLimitingQueueWithConfig(rateLimiter, compat.TypedRateLimitingQueueConfig[T]{Name: name})
}
