// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"cmp"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ErrorDelays are the delays of a TypedErrorTypeRateLimiter. A zero field means the default, which
// is in brackets.
type ErrorDelays struct {
	// Timeout follows a request that was not answered in time [100ms].
	Timeout time.Duration
	// Conflict follows a write with a stale resourceVersion [1s].
	Conflict time.Duration
	// TooManyRequests follows a 429 without Retry-After [30s].
	TooManyRequests time.Duration
	// BaseDelay follows any other error, doubled for each failure before it [100ms].
	BaseDelay time.Duration
	// MaxDelay is where the doubling ends, and the longest Retry-After that is obeyed [1000s].
	MaxDelay time.Duration
}

// TypedErrorTypeRateLimiter chooses the delay by the error that an item failed with.
//
// Pass the error to WhenError, as TypedRateLimitingQueue.AddFailed does. Or pass it to Failed, and
// then call When, as AddRateLimited of any queue does.
//
// Items that are never forgotten are dropped, as by TypedItemExponentialFailureRateLimiter, with
// the longest delay as maxDelay.
type TypedErrorTypeRateLimiter[T comparable] struct {
	failures[T]
	delays ErrorDelays
}

// Values of failure.next that are not a delay.
const (
	unset    time.Duration = 0
	doubling time.Duration = -1
)

// NewTypedErrorTypeRateLimiter returns a limiter that chooses the delay by the error. Delays may be
// the zero value.
func NewTypedErrorTypeRateLimiter[T comparable](delays ErrorDelays) *TypedErrorTypeRateLimiter[T] {
	delays = ErrorDelays{
		Timeout:         cmp.Or(delays.Timeout, 100*time.Millisecond),
		Conflict:        cmp.Or(delays.Conflict, time.Second),
		TooManyRequests: cmp.Or(delays.TooManyRequests, 30*time.Second),
		BaseDelay:       cmp.Or(delays.BaseDelay, 100*time.Millisecond),
		MaxDelay:        cmp.Or(delays.MaxDelay, 1000*time.Second),
	}
	r := &TypedErrorTypeRateLimiter[T]{delays: delays}
	r.init(max(delays.Timeout, delays.Conflict, delays.TooManyRequests, delays.MaxDelay))
	return r
}

// WhenError counts a failure of item. A Retry-After that the server sent, up to MaxDelay, decides;
// without one the kind of error does.
func (r *TypedErrorTypeRateLimiter[T]) WhenError(item T, err error) time.Duration {
	return r.delay(r.fail(item), r.delayFor(err))
}

// Failed sets the error for the next When of item. A nil err means an error of no known kind, as if
// Failed had not been called.
func (r *TypedErrorTypeRateLimiter[T]) Failed(item T, err error) {
	next := r.delayFor(err) // calls methods of err
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.getLocked(item)
	known.next = next
	r.putLocked(item, known, time.Now())
}

// When counts a failure of item, with the error of the last Failed.
func (r *TypedErrorTypeRateLimiter[T]) When(item T) time.Duration {
	before := r.fail(item)
	return r.delay(before, cmp.Or(before.next, doubling))
}

func (r *TypedErrorTypeRateLimiter[T]) delay(before failure, delay time.Duration) time.Duration {
	if delay == doubling {
		return double(r.delays.BaseDelay, before.count, r.delays.MaxDelay)
	}
	return delay
}

// delayFor returns the delay after err, or doubling. It also recognizes a wrapped error.
func (r *TypedErrorTypeRateLimiter[T]) delayFor(err error) time.Duration {
	if seconds, _ := apierrors.SuggestsClientDelay(err); seconds > 0 { // an int32: no overflow
		return min(time.Duration(seconds)*time.Second, r.delays.MaxDelay)
	}
	var network interface{ Timeout() bool } // such as context.DeadlineExceeded
	timedOut := errors.As(err, &network) && network.Timeout()
	switch {
	case timedOut, apierrors.IsTimeout(err), apierrors.IsServerTimeout(err):
		return r.delays.Timeout
	case apierrors.IsConflict(err):
		return r.delays.Conflict
	case apierrors.IsTooManyRequests(err):
		return r.delays.TooManyRequests
	}
	return doubling
}
