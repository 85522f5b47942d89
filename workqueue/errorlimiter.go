// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"cmp"
	"errors"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// ErrorDelays are the delays of a TypedErrorTypeRateLimiter. A field that is zero has the default
// in brackets.
type ErrorDelays struct {
	// Timeout follows a request that was not answered in time [100ms].
	Timeout time.Duration
	// Conflict follows a write on a stale resourceVersion [1s].
	Conflict time.Duration
	// TooManyRequests follows a 429 without Retry-After [30s].
	TooManyRequests time.Duration
	// BaseDelay follows any other error, doubled for each failure before it [100ms].
	BaseDelay time.Duration
	// MaxDelay is where the doubling ends, and the longest Retry-After that is obeyed [1000s].
	MaxDelay time.Duration
}

// TypedErrorTypeRateLimiter decides by the error that an item failed with.
//
// Tell it the error with WhenError, as TypedRateLimitingQueue.AddFailed does; or with Failed, and
// then call When, as AddRateLimited of any queue does.
//
// What nobody forgets is dropped as in TypedItemExponentialFailureRateLimiter; the longest of the
// delays counts as maxDelay.
type TypedErrorTypeRateLimiter[T comparable] struct {
	delays ErrorDelays

	mu    sync.Mutex
	known failures[T, errorState]
}

type errorState struct {
	count int
	// told is the delay for the error that Failed was told, until When uses it. It is unset if
	// there is none, and doubling if the delay is the exponential one.
	told time.Duration
}

const (
	unset    time.Duration = 0
	doubling time.Duration = -1
)

// NewTypedErrorTypeRateLimiter decides by the error; delays may be the zero value.
func NewTypedErrorTypeRateLimiter[T comparable](delays ErrorDelays) *TypedErrorTypeRateLimiter[T] {
	delays = ErrorDelays{
		Timeout:         cmp.Or(delays.Timeout, 100*time.Millisecond),
		Conflict:        cmp.Or(delays.Conflict, time.Second),
		TooManyRequests: cmp.Or(delays.TooManyRequests, 30*time.Second),
		BaseDelay:       cmp.Or(delays.BaseDelay, 100*time.Millisecond),
		MaxDelay:        cmp.Or(delays.MaxDelay, 1000*time.Second),
	}
	longest := max(delays.Timeout, delays.Conflict, delays.TooManyRequests, delays.MaxDelay)
	return &TypedErrorTypeRateLimiter[T]{delays: delays, known: newFailures[T, errorState](longest)}
}

// WhenError counts a failure of item. A Retry-After that the server sent decides; then the kind of
// error.
func (r *TypedErrorTypeRateLimiter[T]) WhenError(item T, err error) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.countLocked(item, r.delayFor(err))
}

// Failed tells the error that the next When of item decides by. A nil err, or no Failed, means an
// error of no known kind.
func (r *TypedErrorTypeRateLimiter[T]) Failed(item T, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	state := r.known.get(item)
	state.told = r.delayFor(err)
	r.known.put(item, state, time.Now())
}

// When counts a failure of item, with the error of the last Failed.
func (r *TypedErrorTypeRateLimiter[T]) When(item T) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.countLocked(item, cmp.Or(r.known.get(item).told, doubling))
}

func (r *TypedErrorTypeRateLimiter[T]) countLocked(item T, delay time.Duration) time.Duration {
	before := r.known.get(item).count
	r.known.put(item, errorState{count: before + 1, told: unset}, time.Now())
	if delay == doubling {
		return double(r.delays.BaseDelay, before, r.delays.MaxDelay)
	}
	return delay
}

// delayFor looks through wrapped errors.
func (r *TypedErrorTypeRateLimiter[T]) delayFor(err error) time.Duration {
	if seconds, ok := apierrors.SuggestsClientDelay(err); ok && seconds > 0 {
		if time.Duration(seconds) > r.delays.MaxDelay/time.Second {
			return r.delays.MaxDelay // a server may ask for any time
		}
		return time.Duration(seconds) * time.Second
	}
	var network interface{ Timeout() bool } // context.DeadlineExceeded is one
	switch {
	case apierrors.IsTimeout(err), apierrors.IsServerTimeout(err), errors.As(err, &network) && network.Timeout():
		return r.delays.Timeout
	case apierrors.IsConflict(err):
		return r.delays.Conflict
	case apierrors.IsTooManyRequests(err):
		return r.delays.TooManyRequests
	}
	return doubling
}

// NumRequeues is how often item failed since it was last forgotten, whatever the errors were.
func (r *TypedErrorTypeRateLimiter[T]) NumRequeues(item T) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known.get(item).count
}

// Forget forgets item's failures and the error that Failed told.
func (r *TypedErrorTypeRateLimiter[T]) Forget(item T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.forget(item)
}

// Tracked is how many items have failures that are remembered.
func (r *TypedErrorTypeRateLimiter[T]) Tracked() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known.len()
}
