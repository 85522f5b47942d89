// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"testing"
	"time"

	"example.com/informerstack/internal/tools/measure"
	"example.com/informerstack/workqueue"
)

// The time for n keys, or n limiters, grows about linearly with n.
func TestGrowth(t *testing.T) {
	exponential := func() workqueue.TypedRateLimiter[int] {
		return workqueue.NewTypedItemExponentialFailureRateLimiter[int](time.Hour, 2*time.Hour)
	}
	for name, run := range map[string]func(n int){
		"Add, Get, Done": func(n int) {
			q := workqueue.NewTyped(workqueue.Config[int]{})
			for i := range n {
				q.Add(i)
			}
			for range n {
				q.Get()
			}
			for i := range n {
				q.Add(i)
				q.Done(i)
			}
		},
		"AddRateLimited, Snapshot, CancelDelayed, Forget": func(n int) {
			q := workqueue.NewTypedRateLimitingQueue(exponential(), workqueue.Config[int]{})
			defer q.ShutDown()
			for i := range n {
				q.AddRateLimited(n - i)
			}
			q.Snapshot()
			for i := range n {
				q.CancelDelayed(i + 1)
				q.Forget(i + 1)
			}
		},
		"limiters": func(n int) {
			limiters := make([]workqueue.TypedRateLimiter[int], n)
			for i := range limiters {
				limiters[i] = exponential()
			}
			limiter := workqueue.NewTypedMaxOfRateLimiter(limiters...)
			limiter.When(1)
			limiter.NumRequeues(1)
			limiter.Forget(1)
		},
	} {
		t.Run(name, func(t *testing.T) { measure.Growth(t, 5000, run) })
	}
}
