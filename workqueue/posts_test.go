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

	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/workqueue"
)

// narratedLimiter logs the delays above 0 that a limiter returns.
type narratedLimiter struct {
	workqueue.TypedRateLimiter[string]
	log *narrate.Log
}

func (n narratedLimiter) When(item string) time.Duration {
	delay := n.TypedRateLimiter.When(item)
	if delay > 0 {
		n.log.Event("workqueue", "When(%s) = %v", item, delay)
	}
	return delay
}

func (n narratedLimiter) Forget(item string) {
	n.log.Event("workqueue", "Forget(%s)", item)
	n.TypedRateLimiter.Forget(item)
}

// onBothLimiters runs f on a limiter of ours and on client-go's, each in a bubble of fake time.
func onBothLimiters(t *testing.T, ours, clientGos func() workqueue.TypedRateLimiter[string],
	f func(t *testing.T, limiter workqueue.TypedRateLimiter[string]),
) {
	for i, limiter := range []func() workqueue.TypedRateLimiter[string]{ours, clientGos} {
		t.Run("impl="+impls[i].name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f(t, narratedLimiter{limiter(), narrate.New(t)})
			})
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
			queued := func(want int) {
				limiter.(narratedLimiter).log.Event("workqueue", "%d items are queued", q.Len())
				assert.Equal(t, want, q.Len())
			}
			start := time.Now()
			for i := range 102 { // the bucket holds 100
				q.AddRateLimited(fmt.Sprint(i))
			}
			q.Add("not limited")
			assert.Equal(t, start, time.Now(), "no call has blocked")
			queued(101)
			after(100 * time.Millisecond)
			queued(102)
			after(100 * time.Millisecond)
			queued(103)
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
