// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// TypedBucketRateLimiter is one token bucket for all items: it limits how many are added per second, whichever they are.
type TypedBucketRateLimiter[T comparable] struct {
	*rate.Limiter
}

// NewTypedBucketRateLimiter makes a bucket that holds up to burst tokens, at first full, and gains qps of them a second.
//
// If qps is zero, negative or not a number, the burst is all there ever is, and if burst is not positive there is nothing:
// what finds the bucket empty then waits for rate.InfDuration, some 292 years. An infinite qps limits nothing.
func NewTypedBucketRateLimiter[T comparable](qps float64, burst int) TypedRateLimiter[T] {
	limit := rate.Limit(qps)
	switch {
	case math.IsNaN(qps):
		limit = 0
	case math.IsInf(qps, 1):
		limit = rate.Inf
	}
	return &TypedBucketRateLimiter[T]{Limiter: rate.NewLimiter(limit, burst)}
}

// When takes a token and returns how long it is until that token exists. It does not wait, and the token is never given
// back.
func (r *TypedBucketRateLimiter[T]) When(T) time.Duration {
	return r.Reserve().Delay()
}

// NumRequeues is 0: a bucket does not know items.
func (r *TypedBucketRateLimiter[T]) NumRequeues(T) int { return 0 }

// Forget does nothing: a bucket does not know items.
func (r *TypedBucketRateLimiter[T]) Forget(T) {}
