// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"golang.org/x/time/rate"
	reference "k8s.io/client-go/util/workqueue"

	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/workqueue"
)

// narratedLimiter logs the delays above 0 that a limiter returns.
type narratedLimiter struct {
	limiter
	log *narrate.Log
}

func (n narratedLimiter) When(item string) time.Duration {
	delay := n.limiter.When(item)
	if delay > 0 {
		n.log.Event("workqueue", "When(%s) = %v", item, delay)
	}
	return delay
}

func (n narratedLimiter) Forget(item string) {
	n.log.Event("workqueue", "Forget(%s)", item)
	n.limiter.Forget(item)
}

// It is often said that a token bucket blocks until there is a token, and that it limits what a
// controller does. It does not block: it says how long it is until the token that was taken exists.
// And only AddRateLimited asks it, Add does not.
func TestPost_TokenBucketDoesNotBlock(t *testing.T) {
	ours := func() limiter { return workqueue.NewTypedBucketRateLimiter[string](10, 100) }
	theirs := func() limiter {
		return &reference.TypedBucketRateLimiter[string]{Limiter: rate.NewLimiter(10, 100)}
	}
	onEach(t, ours, theirs, func(t *testing.T, impl string, l limiter) {
		log := narrate.New(t)
		q := workqueue.NewTypedRateLimitingQueue[string](narratedLimiter{l, log},
			workqueue.Config[string]{})
		defer q.ShutDown()
		queued := func(want int) {
			log.Event("workqueue", "%d items are queued", q.Len())
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
	})
}

// The fast/slow limiter is often called a counter with a time window. There is no window: each item
// is counted by itself, and nothing but Forget gives it its fast attempts back.
func TestPost_FastSlowHasNoTimeWindow(t *testing.T) {
	const fast, slow = time.Second, 10 * time.Second
	ours := func() limiter {
		return workqueue.NewTypedItemFastSlowRateLimiter[string](fast, slow, 3)
	}
	theirs := func() limiter {
		return reference.NewTypedItemFastSlowRateLimiter[string](fast, slow, 3)
	}
	onEach(t, ours, theirs, func(t *testing.T, impl string, l limiter) {
		limiter := narratedLimiter{l, narrate.New(t)}
		for range 3 {
			assert.Equal(t, fast, limiter.When("a"))
		}
		assert.Equal(t, slow, limiter.When("a"))
		time.Sleep(10 * time.Hour)
		assert.Equal(t, slow, limiter.When("a"), "time changes nothing")
		assert.Equal(t, fast, limiter.When("b"), "b is another item")
		limiter.Forget("a")
		assert.Equal(t, fast, limiter.When("a"))
	})
}
