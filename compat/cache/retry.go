// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"time"

	"k8s.io/utils/clock"
)

// RetryWithDeadline bounds how long an action that keeps failing is retried at once. It must be
// used by one goroutine at a time.
//
// Source: tools/cache/retry_with_deadline.go RetryWithDeadline
type RetryWithDeadline interface {
	// After records that an attempt failed with err.
	After(err error)
	// ShouldRetry reports whether the action may be retried.
	ShouldRetry() bool
}

// NewRetryWithDeadline allows retries for maxRetryDuration after the first error that isRetryable;
// 0 or less allows no retry. After minResetPeriod without such an error, or after a refusal, the
// time starts again with the next error.
//
// Source: tools/cache/retry_with_deadline.go NewRetryWithDeadline
func NewRetryWithDeadline(
	maxRetryDuration, minResetPeriod time.Duration, isRetryable func(error) bool, clock clock.Clock,
) RetryWithDeadline {
	return &retryWithDeadline{
		max: maxRetryDuration, reset: minResetPeriod, isRetryable: isRetryable, clock: clock,
	}
}

type retryWithDeadline struct {
	max, reset  time.Duration
	isRetryable func(error) bool
	clock       clock.Clock

	first, last time.Time // errors of the present period; zero before the first
}

// After implements RetryWithDeadline.
func (r *retryWithDeadline) After(err error) {
	if !r.isRetryable(err) {
		return
	}
	now := r.clock.Now()
	if r.first.IsZero() || now.Sub(r.last) >= r.reset {
		r.first = now
	}
	r.last = now
}

// ShouldRetry implements RetryWithDeadline.
func (r *retryWithDeadline) ShouldRetry() bool {
	switch {
	case r.max <= 0:
		return false
	case r.clock.Since(r.first) <= r.max:
		return true
	}
	r.first, r.last = time.Time{}, time.Time{}
	return false
}
