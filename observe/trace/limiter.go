// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"sync"
	"time"

	"example.com/informerstack/workqueue"
)

// delayRecorder is a limiter that remembers the newest delay of each item until take.
type delayRecorder[T comparable] struct {
	workqueue.TypedRateLimiter[T]

	mu     sync.Mutex
	delays map[T]time.Duration
}

// When records the limiter's delay.
func (r *delayRecorder[T]) When(item T) time.Duration {
	return r.record(item, r.TypedRateLimiter.When(item))
}

// WhenError records the delay of a limiter that decides by the error, or of any other one.
func (r *delayRecorder[T]) WhenError(item T, err error) time.Duration {
	if l, ok := r.TypedRateLimiter.(workqueue.ErrorRateLimiter[T]); ok {
		return r.record(item, l.WhenError(item, err))
	}
	return r.When(item)
}

// Tracked returns the number of items that the limiter remembers.
func (r *delayRecorder[T]) Tracked() int {
	if t, ok := r.TypedRateLimiter.(workqueue.Tracker); ok {
		return t.Tracked()
	}
	return 0
}

func (r *delayRecorder[T]) record(item T, delay time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.delays[item] = delay
	return delay
}

// take returns the item's newest delay, and forgets it.
func (r *delayRecorder[T]) take(item T) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	delay := r.delays[item]
	delete(r.delays, item)
	return delay
}
