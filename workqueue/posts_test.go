// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"golang.org/x/time/rate"
	reference "k8s.io/client-go/util/workqueue"

	"example.com/informerstack/internal/transcript"
	"example.com/informerstack/workqueue"
)

// onBothLimiters runs f on a limiter of ours and on client-go's, each in a bubble of fake time.
func onBothLimiters(t *testing.T, ours, clientGos func() workqueue.TypedRateLimiter[string],
	f func(t *testing.T, limiter workqueue.TypedRateLimiter[string]),
) {
	for impl, limiter := range map[string]func() workqueue.TypedRateLimiter[string]{
		transcript.Ours: ours,
		clientGo:        clientGos,
	} {
		t.Run("impl="+impl, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { f(t, limiter()) })
		})
	}
}

// It is often said that a token bucket blocks until there is a token, and that it limits what a
// controller does. It does not block: it says how long it is until the token that was taken exists.
// And only AddRateLimited asks it, Add does not.
func TestPost_TokenBucketDoesNotBlock(t *testing.T) {
	onBothLimiters(
		t,
		func() workqueue.TypedRateLimiter[string] {
			return workqueue.NewTypedBucketRateLimiter[string](10, 100)
		},
		func() workqueue.TypedRateLimiter[string] {
			return &reference.TypedBucketRateLimiter[string]{Limiter: rate.NewLimiter(10, 100)}
		},
		func(t *testing.T, limiter workqueue.TypedRateLimiter[string]) {
			q := workqueue.NewTypedRateLimitingQueue(limiter, workqueue.Config[string]{})
			defer q.ShutDown()
			start := time.Now()
			for i := range 102 { // the bucket holds 100
				q.AddRateLimited(fmt.Sprint(i))
			}
			q.Add("not limited")
			assert.Equal(t, start, time.Now(), "no call has blocked")
			assert.Equal(t, 101, q.Len())
			after(100 * time.Millisecond)
			assert.Equal(t, 102, q.Len())
			after(100 * time.Millisecond)
			assert.Equal(t, 103, q.Len())
		},
	)
}

// The fast/slow limiter is often called a counter with a time window. There is no window: each item
// is counted by itself, and nothing but Forget gives it its fast attempts back.
func TestPost_FastSlowHasNoTimeWindow(t *testing.T) {
	onBothLimiters(t,
		func() workqueue.TypedRateLimiter[string] {
			return workqueue.NewTypedItemFastSlowRateLimiter[string](time.Second, 10*time.Second, 3)
		},
		func() workqueue.TypedRateLimiter[string] {
			return reference.NewTypedItemFastSlowRateLimiter[string](time.Second, 10*time.Second, 3)
		},
		func(t *testing.T, limiter workqueue.TypedRateLimiter[string]) {
			for range 3 {
				assert.Equal(t, time.Second, limiter.When("a"))
			}
			assert.Equal(t, 10*time.Second, limiter.When("a"))
			time.Sleep(10 * time.Hour)
			assert.Equal(t, 10*time.Second, limiter.When("a"), "time changes nothing")
			assert.Equal(t, time.Second, limiter.When("b"), "b is another item")
			limiter.Forget("a")
			assert.Equal(t, time.Second, limiter.When("a"))
		})
}
