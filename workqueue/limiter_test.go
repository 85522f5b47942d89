// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/workqueue"
)

var (
	conflict = apierrors.NewConflict(
		schema.GroupResource{Resource: "pods"},
		"a",
		errors.New("changed"),
	)
	tooMany     = apierrors.NewTooManyRequestsError("slow down")
	tooManyWait = apierrors.NewTooManyRequests("slow down", 12)
	errOther    = errors.New("other")
)

// The kind of an error decides the first delay: a conflict one second, too many requests 30 seconds
// or what the server asks for, and other errors the base delay.
func TestErrorTypeRateLimiter_Kinds(t *testing.T) {
	for _, c := range []struct {
		err  error
		want time.Duration
	}{
		{apierrors.NewTimeoutError("slow", 0), 100 * time.Millisecond},
		{apierrors.NewTimeoutError("slow", 3), 3 * time.Second},
		{apierrors.NewServerTimeout(schema.GroupResource{}, "get", 0), 100 * time.Millisecond},
		{context.DeadlineExceeded, 100 * time.Millisecond},
		{&net.DNSError{IsTimeout: true}, 100 * time.Millisecond},
		{conflict, time.Second},
		{fmt.Errorf("update: %w", conflict), time.Second},
		{tooMany, 30 * time.Second},
		{tooManyWait, 12 * time.Second},
		{fmt.Errorf("update: %w", tooManyWait), 12 * time.Second},
		{errOther, 100 * time.Millisecond},
		{&net.DNSError{}, 100 * time.Millisecond},
		{context.Canceled, 100 * time.Millisecond},
		{nil, 100 * time.Millisecond},
	} {
		limiter := workqueue.NewTypedErrorTypeRateLimiter[string](workqueue.ErrorDelays{})
		assert.Equal(t, c.want, limiter.WhenError("a", c.err), "%v", c.err)
		limiter.Forget("a")
		limiter.Failed("a", c.err)
		assert.Equal(t, c.want, limiter.When("a"), "%v by Failed", c.err)
		assert.Equal(t, 1, limiter.NumRequeues("a"))
	}
}

// The delay of each kind can be set, and other errors double theirs up to the maximum.
func TestErrorTypeRateLimiter_DelaysCanBeSet(t *testing.T) {
	limiter := workqueue.NewTypedErrorTypeRateLimiter[string](workqueue.ErrorDelays{
		Timeout: 1, Conflict: 2, TooManyRequests: 3, BaseDelay: 4, MaxDelay: 20,
	})
	assert.Equal(t, time.Duration(1), limiter.WhenError("a", context.DeadlineExceeded))
	assert.Equal(t, time.Duration(2), limiter.WhenError("a", conflict))
	assert.Equal(t, time.Duration(3), limiter.WhenError("a", tooMany))
	assert.Equal(
		t,
		time.Duration(20),
		limiter.WhenError("a", errOther),
		"4 doubled three times is more than 20",
	)
	assert.Equal(t, 4, limiter.NumRequeues("a"))
}

// A Retry-After counts up to MaxDelay: what a server sends does not stop an item for ever.
func TestErrorTypeRateLimiter_RetryAfterIsLimited(t *testing.T) {
	for _, err := range []error{
		apierrors.NewTooManyRequests("slow down", 60),
		apierrors.NewTooManyRequests("slow down", math.MaxInt32),
		apierrors.NewTimeoutError("slow", 3600),
	} {
		limiter := workqueue.NewTypedErrorTypeRateLimiter[string](
			workqueue.ErrorDelays{TooManyRequests: time.Hour, MaxDelay: time.Minute})
		assert.Equal(t, time.Minute, limiter.WhenError("a", err))
		limiter.Failed("a", err)
		assert.Equal(t, time.Minute, limiter.When("a"))
		assert.Equal(
			t,
			time.Hour,
			limiter.WhenError("a", tooMany),
			"the owner's own delay is not limited",
		)
	}
	unset := workqueue.NewTypedErrorTypeRateLimiter[string](workqueue.ErrorDelays{})
	assert.Equal(t, 1000*time.Second, unset.WhenError("a", apierrors.NewTooManyRequests("", 3600)))
}

// Failed is used once: the next When without it decides by no error.
func TestErrorTypeRateLimiter_FailedIsUsedOnce(t *testing.T) {
	limiter := workqueue.NewTypedErrorTypeRateLimiter[string](workqueue.ErrorDelays{})
	limiter.Failed("a", conflict)
	limiter.Failed("b", tooMany)
	assert.Equal(t, time.Second, limiter.When("a"))
	assert.Equal(t, 200*time.Millisecond, limiter.When("a"))
	assert.Equal(t, 30*time.Second, limiter.When("b"))
	limiter.Failed("a", conflict)
	limiter.Forget("a")
	assert.Equal(t, 100*time.Millisecond, limiter.When("a"))
}

// AddFailed takes the error through the limiters that combine others; a limiter that does not know
// errors counts as usual.
func TestStory_AddFailedDecidesByTheError(t *testing.T) {
	byError := func() workqueue.TypedRateLimiter[string] {
		return workqueue.NewTypedErrorTypeRateLimiter[string](workqueue.ErrorDelays{})
	}
	for name, c := range map[string]struct {
		limiter workqueue.TypedRateLimiter[string]
		want    time.Duration
	}{
		"by error": {byError(), 30 * time.Second},
		"maximum of two": {
			workqueue.NewTypedMaxOfRateLimiter(
				byError(), workqueue.NewTypedBucketRateLimiter[string](1, 1)),
			30 * time.Second,
		},
		"maximum wait": {
			workqueue.NewTypedWithMaxWaitRateLimiter(byError(), 3*time.Second),
			3 * time.Second,
		},
		"exponential": {
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Second, time.Hour),
			time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := workqueue.NewTypedRateLimitingQueue(c.limiter, workqueue.Config[string]{})
				defer q.ShutDown()
				q.AddFailed("a", tooMany)
				narrate.New(t).Event("worker", "AddFailed a, %q: again in %v", tooMany.Error(),
					time.Until(q.Snapshot().Waiting[0].Due))
				after(c.want - 1)
				assert.Equal(t, 0, q.Len())
				after(1)
				assert.Equal(t, 1, q.Len())
				assert.Equal(t, 1, q.NumRequeues("a"))
				assert.Equal(t, 1, q.Snapshot().Limited)
				q.Forget("a")
				assert.Equal(t, 0, q.NumRequeues("a"))
				assert.Equal(t, 0, q.Snapshot().Limited)
			})
		})
	}
}

// A Retry-After is obeyed up to MaxDelay: a server cannot park an item for ever.
func TestRetryAfter_IsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := workqueue.NewTypedErrorTypeRateLimiter[string](
			workqueue.ErrorDelays{MaxDelay: time.Minute},
		)
		q := workqueue.NewTypedRateLimitingQueue(limiter, workqueue.Config[string]{})
		defer q.ShutDown()
		for seconds, want := range map[int]time.Duration{
			30: 30 * time.Second, 60: time.Minute, 61: time.Minute, math.MaxInt32: time.Minute,
		} {
			start := time.Now()
			q.AddFailed("a", apierrors.NewTooManyRequests("slow down", seconds))
			item, _ := q.Get()
			assert.Equal(t, want, time.Since(start), "%d", seconds)
			q.Done(item)
		}
	})
}
