// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	reference "k8s.io/client-go/util/workqueue"

	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/workqueue"
)

type limiter = workqueue.TypedRateLimiter[string]

var (
	conflict = apierrors.NewConflict(
		schema.GroupResource{Resource: "pods"}, "a", errors.New("changed"))
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
	for i, err := range []error{
		context.DeadlineExceeded, conflict, tooMany, errOther, &net.DNSError{}, nil,
	} {
		want := time.Duration(min(i+1, 4))
		assert.Equal(t, want, limiter.WhenError(fmt.Sprint("another ", i), err), "%v", err)
		if err != nil && want < 4 {
			assert.Equal(t, want, limiter.WhenError("a", err))
		}
	}
	got := limiter.WhenError("a", errOther)
	assert.EqualValues(t, 20, got, "4 doubled three times is more than 20")
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
		got := limiter.WhenError("a", tooMany)
		assert.Equal(t, time.Hour, got, "the owner's own delay is not limited")
	}
	const longest = 1500 * time.Millisecond
	limiter := workqueue.NewTypedErrorTypeRateLimiter[string](
		workqueue.ErrorDelays{MaxDelay: longest})
	for seconds, want := range map[int]time.Duration{
		1: time.Second, 2: longest, math.MaxInt32: longest,
	} {
		assert.Equal(t, want, limiter.WhenError("a", apierrors.NewTooManyRequests("", seconds)))
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
	byError := func() limiter {
		return workqueue.NewTypedErrorTypeRateLimiter[string](workqueue.ErrorDelays{})
	}
	for name, c := range map[string]struct {
		limiter limiter
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

// The delay doubles as long as it does not exceed the longest one, for any number of failures. One
// that is not positive stays as it is.
func TestExponentialLimiter_Doubles(t *testing.T) {
	type delays = []time.Duration
	always := func(d time.Duration) delays { return slices.Repeat(delays{d}, 100) }
	for _, c := range []struct {
		base, longest time.Duration
		want          delays // then longest
	}{
		{0, time.Hour, always(0)},
		{-1, time.Hour, always(-1)},
		{-time.Second, time.Hour, always(-time.Second)},
		{1, 1, nil},
		{1, 2, delays{1}},
		{1, 3, delays{1, 2}},
		{1, 4, delays{1, 2}},
		{3, 23, delays{3, 6, 12}},
		{3, 24, delays{3, 6, 12}},
		{5, 4, nil},
		{5, 0, nil},
		{5, -1, nil},
		{-1, -5, nil},
		{1 << 61, math.MaxInt64, delays{1 << 61, 1 << 62}},
		{math.MaxInt64 / 2, math.MaxInt64 - 1, delays{math.MaxInt64 / 2}},
	} {
		limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](c.base, c.longest)
		for n := range 100 {
			want := c.longest
			if n < len(c.want) {
				want = c.want[n]
			}
			assert.Equal(t, want, limiter.When("a"), "%v up to %v, %d", c.base, c.longest, n)
		}
	}
}

// An item is remembered for the time keep after its failure, and not for twice that.
func TestLimiter_RemembersFor(t *testing.T) {
	exponential := workqueue.NewTypedItemExponentialFailureRateLimiter[string]
	fastSlow := func(fast, slow time.Duration) limiter {
		return workqueue.NewTypedItemFastSlowRateLimiter[string](fast, slow, 1)
	}
	const hour = time.Hour
	for name, c := range map[string]struct {
		limiter limiter
		keep    time.Duration
	}{
		"short delays":   {exponential(1, time.Minute), workqueue.Remembered},
		"long delays":    {exponential(1, 7*hour), 14 * hour},
		"fast and slow":  {fastSlow(time.Second, 20*hour), 40 * hour},
		"slow and fast":  {fastSlow(20*hour, time.Second), 40 * hour},
		"no delay":       {exponential(0, 0), workqueue.Remembered},
		"no sense":       {exponential(0, math.MinInt64), workqueue.Remembered},
		"for many years": {exponential(1, math.MaxInt64), math.MaxInt64 - 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if c.keep == math.MaxInt64-1 {
					c.limiter.When("a")
					time.Sleep(1e6 * hour)
					c.limiter.When("b")
					assert.Equal(t, 1, c.limiter.NumRequeues("a"))
					return
				}
				for i, item := range []string{"a", "b", "c"} {
					if i > 0 {
						time.Sleep(c.keep)
					}
					c.limiter.When(item)
					known := 0
					for j, item := range []string{"a", "b", "c"} {
						assert.Equal(t, j <= i && j+1 >= i, c.limiter.NumRequeues(item) == 1,
							"%s after that of %d", item, i)
						known += c.limiter.NumRequeues(item)
					}
					assert.Equal(t, known, c.limiter.(workqueue.Tracker).Tracked())
				}
				time.Sleep(2 * c.keep)
				c.limiter.When("d")
				assert.Equal(t, 1, c.limiter.(workqueue.Tracker).Tracked())
			})
		})
	}
}

// There is a cap as well: those that failed least recently go first.
func TestLimiter_RemembersAtMost(t *testing.T) {
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[int](time.Second, time.Minute)
	workqueue.SetMaxRemembered(limiter, 100)
	for i := range 1000 {
		limiter.When(i)
		limiter.When(-1) // fails all the time
		assert.LessOrEqual(t, limiter.(workqueue.Tracker).Tracked(), 100)
		if i > 50 {
			assert.Equal(t, 1, limiter.NumRequeues(i-48))
		}
	}
	assert.Equal(t, 1000, limiter.NumRequeues(-1))
	assert.Zero(t, limiter.NumRequeues(0))
}

// Limiters of ours answer what client-go's answer.
func TestLimiters_AnswerLikeClientGo(t *testing.T) {
	const ms, hour = time.Millisecond, time.Hour
	pairs := map[string][2]limiter{
		"fast, slow": {
			workqueue.NewTypedItemFastSlowRateLimiter[string](ms, hour, 3),
			reference.NewTypedItemFastSlowRateLimiter[string](ms, hour, 3)},
		"fast, slow, negative": {
			workqueue.NewTypedItemFastSlowRateLimiter[string](-ms, -hour, -3),
			reference.NewTypedItemFastSlowRateLimiter[string](-ms, -hour, -3)},
		"maximum of none": {
			workqueue.NewTypedMaxOfRateLimiter[string](),
			reference.NewTypedMaxOfRateLimiter[string]()},
		"default": {
			workqueue.DefaultTypedControllerRateLimiter[string](),
			reference.DefaultTypedControllerRateLimiter[string]()},
	}
	for _, delay := range [][2]time.Duration{ // base and longest
		{ms, hour}, {hour, ms}, {hour, 0}, {ms, -ms}, {3 * ms, math.MaxInt64},
	} {
		pairs[fmt.Sprintf("exponential, %v to %v", delay[0], delay[1])] = [2]limiter{
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](delay[0], delay[1]),
			reference.NewTypedItemExponentialFailureRateLimiter[string](delay[0], delay[1])}
	}
	for _, longest := range []time.Duration{time.Second, -1} {
		pairs[fmt.Sprintf("maximum wait, %v", longest)] = [2]limiter{
			workqueue.NewTypedWithMaxWaitRateLimiter(
				workqueue.DefaultTypedItemBasedRateLimiter[string](), longest),
			reference.NewTypedWithMaxWaitRateLimiter(
				reference.DefaultTypedItemBasedRateLimiter[string](), longest)}
	}
	for name, pair := range pairs {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := pair[0], pair[1]
				for n := range 200 {
					item := fmt.Sprint(n % 3)
					assert.Equal(t, theirs.When(item), ours.When(item), "call %d", n)
					assert.Equal(t, theirs.NumRequeues(item), ours.NumRequeues(item))
					if n%50 == 49 {
						theirs.Forget(item)
						ours.Forget(item)
						assert.Equal(t, theirs.NumRequeues(item), ours.NumRequeues(item))
					}
				}
			})
		})
	}
}
