// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	reference "k8s.io/client-go/util/workqueue"

	"example.com/informerstack/internal/tools/transcript"
	"example.com/informerstack/workqueue"
)

// Where ours differ from client-go's on purpose, both sides are shown.

// kubernetes/kubernetes#141079: ShutDownWithDrain of client-go returns while items are queued that
// no worker has yet.
func TestDifference_DrainWaitsForWhatIsQueued(t *testing.T) {
	onBoth(t, func(t *testing.T, impl string, q queue) {
		q.Add("a")
		var drained atomic.Bool
		go func() {
			q.ShutDownWithDrain()
			drained.Store(true)
		}()
		synctest.Wait()
		assert.Equal(t, impl == clientGo, drained.Load())
		assert.Equal(t, "a", next(q))
		q.Done("a")
		synctest.Wait()
		assert.True(t, drained.Load())
	})
}

// A delaying queue of client-go hands its first ShutDown alone to the queue below.
func TestDifference_ASecondShutDownEndsADrain(t *testing.T) {
	onBoth(t, func(t *testing.T, impl string, q queue) {
		q.Add("a")
		assert.Equal(t, "a", next(q))
		q.ShutDown()
		var drained atomic.Bool
		go func() {
			q.ShutDownWithDrain()
			drained.Store(true)
		}()
		synctest.Wait()
		assert.False(t, drained.Load())
		q.ShutDown()
		synctest.Wait()
		assert.Equal(t, impl == transcript.Ours, drained.Load())
		q.Done("a")
	})
}

// cilium/cilium#21644: the goroutine of a client-go queue that was drained lives on for up to ten
// seconds.
func TestDifference_DrainLeavesNothingRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.NewTypedDelayingQueue(workqueue.Config[string]{})
		q.AddAfter("a", time.Second)
		q.AddAfter("b", time.Hour)
		after(time.Minute)
		go func() {
			item, _ := q.Get()
			q.Done(item)
		}()
		q.ShutDownWithDrain()
		synctest.Wait()
		assert.Zero(t, goroutines())
		q.CheckLaws(t)
	})
}

// kubernetes/kubernetes#141079: Done of an item that no worker has queues it a second time in
// client-go.
func TestDifference_DoneWithoutGetIsIgnored(t *testing.T) {
	onBoth(t, func(t *testing.T, impl string, q queue) {
		q.Add("a")
		q.Done("a")
		if impl == clientGo {
			assert.Equal(t, 2, q.Len())
		} else {
			assert.Equal(t, 1, q.Len())
		}
	})
}

// The 1001st AddAfter of client-go blocks while its goroutine does not come to take it; ours has no
// channel to fill. Here the goroutine hangs in the Add of a queue of the owner's own.
func TestDifference_AddAfterNeverBlocks(t *testing.T) {
	for _, impl := range []string{transcript.Ours, clientGo} {
		t.Run("impl="+impl, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := &slowQueue{
					ContextInterface: workqueue.NewTyped(workqueue.Config[int]{}),
					release:          make(chan struct{}),
				}
				var q workqueue.TypedDelayingInterface[int]
				if impl == transcript.Ours {
					q = workqueue.NewTypedDelayingQueue(workqueue.Config[int]{Queue: slow})
				} else {
					q = reference.NewTypedDelayingQueueWithConfig(
						reference.TypedDelayingQueueConfig[int]{Queue: slow})
				}
				defer q.ShutDown()
				q.AddAfter(0, time.Second)
				after(2 * time.Second) // 0 is due; its Add hangs
				var calls atomic.Int32
				go func() {
					for i := range 2000 {
						q.AddAfter(i, time.Hour)
						calls.Add(1)
					}
				}()
				synctest.Wait()
				if impl == transcript.Ours {
					assert.EqualValues(t, 2000, calls.Load())
				} else {
					assert.EqualValues(t, 1000, calls.Load())
				}
				close(slow.release)
				synctest.Wait()
			})
		})
	}
}

// slowQueue is a queue of the owner's own. Its Add hangs until release.
type slowQueue struct {
	workqueue.ContextInterface[int]
	release chan struct{}
}

func (q *slowQueue) Add(item int) {
	<-q.release
	q.ContextInterface.Add(item)
}

// Items that are due at the same moment join in the order in which they were added; in client-go in
// no order.
func TestDifference_EqualTimesKeepTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.NewTypedDelayingQueue(workqueue.Config[int]{})
		defer q.ShutDown()
		const n = 200 // several batches
		for i := range n {
			q.AddAfter(i, time.Second)
		}
		after(time.Second)
		for i := range n {
			item, _ := q.Get()
			assert.Equal(t, i, item)
		}
	})
}

// kubernetes/kubernetes#110696, #138743: an item that is never forgotten stays in a client-go
// limiter. Ours drops an item at the first failure of another one 24 hours after its last, and
// keeps it for 12 hours at least.
func TestDifference_UnforgottenItemsAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, limiter := range map[string]workqueue.TypedRateLimiter[string]{
			"exponential": workqueue.NewTypedItemExponentialFailureRateLimiter[string](
				time.Second, time.Minute),
			"fast, slow": workqueue.NewTypedItemFastSlowRateLimiter[string](
				time.Second, time.Minute, 3),
			"by error": workqueue.NewTypedErrorTypeRateLimiter[string](workqueue.ErrorDelays{}),
		} {
			tracked := func() int { return limiter.(workqueue.Tracker).Tracked() }
			for i := range 100 {
				limiter.When(fmt.Sprint(i))
				time.Sleep(time.Minute)
			}
			assert.Equal(t, 100, tracked(), name)
			time.Sleep(workqueue.Remembered - 2*time.Hour)
			limiter.When("alive")
			assert.Equal(t, 101, tracked(), name)
			assert.Equal(t, 1, limiter.NumRequeues("99"), name)
			limiter.When("99")
			assert.Equal(t, 2, limiter.NumRequeues("99"), name)
			time.Sleep(workqueue.Remembered)
			limiter.When("alive")
			limiter.When("99")
			assert.Equal(
				t,
				3,
				limiter.NumRequeues("99"),
				"%s: the others are gone, this one was never idle for 12 hours",
				name,
			)
			time.Sleep(workqueue.Remembered)
			limiter.When("alive")
			assert.Equal(t, 2, tracked(), name)
			assert.Equal(t, 0, limiter.NumRequeues("0"), name)
			time.Sleep(10 * workqueue.Remembered)
			limiter.When("new")
			assert.Equal(t, 1, tracked(), name)
		}
	})
}

// An item's last failure is remembered for 12 hours, and not when another item fails 24 hours
// later.
func TestLimiter_RemembersNoLonger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](
			time.Second,
			time.Minute,
		)
		start := time.Now()
		at := func(hour time.Duration, item string) {
			time.Sleep(hour*time.Hour - time.Since(start))
			limiter.When(item)
		}
		at(0, "x")
		at(1, "a")
		at(23, "x")
		assert.Equal(t, 1, limiter.NumRequeues("a"))
		at(25, "x")
		assert.Equal(t, 0, limiter.NumRequeues("a"))
		assert.Equal(t, 3, limiter.NumRequeues("x"))
	})
}

// An item that waits for a long delay is not forgotten meanwhile.
func TestLimiter_RemembersLongerThanTheDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](
			time.Hour,
			1000*time.Hour,
		)
		for n := range 50 {
			assert.Equal(t, n, limiter.NumRequeues("a"))
			time.Sleep(limiter.When("a"))
			limiter.When(fmt.Sprint(n))
		}
	})
}

// Forget resets an item whenever it failed: also one that failed long ago.
func TestLimiter_ForgetsOldFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limiter := workqueue.DefaultTypedItemBasedRateLimiter[string]()
		limiter.When("a")
		time.Sleep(workqueue.Remembered)
		limiter.When("b")
		assert.Equal(t, 1, limiter.NumRequeues("a"))
		limiter.Forget("a")
		assert.Zero(t, limiter.NumRequeues("a"))
		assert.Equal(t, 1, limiter.(workqueue.Tracker).Tracked())
	})
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

// Where doubling reaches 2^63 ns exactly, client-go's delay turns negative on amd64: a retry
// without a pause.
func TestDifference_DelaysAreNeverNegative(t *testing.T) {
	ours := workqueue.NewTypedItemExponentialFailureRateLimiter[string](1, time.Hour)
	theirs := reference.NewTypedItemExponentialFailureRateLimiter[string](1, time.Hour)
	for n := range 100 {
		got, reference := ours.When("a"), theirs.When("a")
		if n == 63 {
			t.Logf("client-go's 64th delay is %s", reference)
			assert.Equal(t, time.Hour, got)
			continue
		}
		assert.Equal(t, reference, got, "after %d failures", n)
	}
}

// Limiters of ours answer what client-go's answer.
func TestLimiters_AnswerLikeClientGo(t *testing.T) {
	type limiter = workqueue.TypedRateLimiter[string]
	const ms = time.Millisecond
	for name, pair := range map[string][2]limiter{
		"exponential": {
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](ms, time.Hour),
			reference.NewTypedItemExponentialFailureRateLimiter[string](ms, time.Hour)},
		"exponential, base above maximum": {
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Hour, ms),
			reference.NewTypedItemExponentialFailureRateLimiter[string](time.Hour, ms)},
		"exponential, maximum zero": {
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Hour, 0),
			reference.NewTypedItemExponentialFailureRateLimiter[string](time.Hour, 0)},
		"exponential, maximum negative": {
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](ms, -ms),
			reference.NewTypedItemExponentialFailureRateLimiter[string](ms, -ms)},
		"exponential, longest": {
			workqueue.NewTypedItemExponentialFailureRateLimiter[string](3*ms, math.MaxInt64),
			reference.NewTypedItemExponentialFailureRateLimiter[string](3*ms, math.MaxInt64)},
		"fast, slow": {
			workqueue.NewTypedItemFastSlowRateLimiter[string](ms, time.Hour, 3),
			reference.NewTypedItemFastSlowRateLimiter[string](ms, time.Hour, 3)},
		"fast, slow, negative": {
			workqueue.NewTypedItemFastSlowRateLimiter[string](-ms, -time.Hour, -3),
			reference.NewTypedItemFastSlowRateLimiter[string](-ms, -time.Hour, -3)},
		"maximum wait": {
			workqueue.NewTypedWithMaxWaitRateLimiter(
				workqueue.DefaultTypedItemBasedRateLimiter[string](), time.Second),
			reference.NewTypedWithMaxWaitRateLimiter(
				reference.DefaultTypedItemBasedRateLimiter[string](), time.Second)},
		"maximum wait, negative": {
			workqueue.NewTypedWithMaxWaitRateLimiter(
				workqueue.DefaultTypedItemBasedRateLimiter[string](), -1),
			reference.NewTypedWithMaxWaitRateLimiter(
				reference.DefaultTypedItemBasedRateLimiter[string](), -1)},
		"maximum of none": {
			workqueue.NewTypedMaxOfRateLimiter[string](),
			reference.NewTypedMaxOfRateLimiter[string]()},
		"default": {
			workqueue.DefaultTypedControllerRateLimiter[string](),
			reference.DefaultTypedControllerRateLimiter[string]()},
	} {
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

// A Done of client-go wakes one of two drains, and the other waits until ShutDown is called.
func TestDifference_EveryDrainEnds(t *testing.T) {
	for impl, construct := range map[string]func() workqueue.TypedInterface[string]{
		transcript.Ours: func() workqueue.TypedInterface[string] {
			return workqueue.NewTyped(workqueue.Config[string]{})
		},
		clientGo: func() workqueue.TypedInterface[string] { return reference.NewTyped[string]() },
	} {
		t.Run(impl, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := construct()
				q.Add("a")
				_, _ = q.Get()
				var drained atomic.Int32
				for range 2 {
					go func() {
						q.ShutDownWithDrain()
						drained.Add(1)
					}()
				}
				synctest.Wait()
				q.Done("a")
				synctest.Wait()
				assert.EqualValues(t, map[string]int{transcript.Ours: 2, clientGo: 1}[impl],
					drained.Load())
				q.ShutDown()
			})
		})
	}
}

// pickyOrder panics when an item is pushed while it is picky.
type pickyOrder struct {
	workqueue.Queue[string]
	picky bool
}

func (o *pickyOrder) Push(item string) {
	if o.picky {
		panic("no " + item)
	}
	o.Queue.Push(item)
}

// If an owner's order panics in Done, the worker no longer has the item, so that a drain ends. The
// next Add queues the item again. In a queue of client-go it stays dirty and is never handed out.
func TestDifference_AnOrderThatPanicsInDone(t *testing.T) {
	for _, impl := range []string{transcript.Ours, clientGo} {
		t.Run(impl, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				order := &pickyOrder{Queue: workqueue.DefaultQueue[string]()}
				var q workqueue.TypedInterface[string]
				q = workqueue.NewTyped(workqueue.Config[string]{Order: order})
				if impl == clientGo {
					q = reference.NewTypedWithConfig(
						reference.TypedQueueConfig[string]{Queue: order})
				}
				q.Add("a")
				_, _ = q.Get()
				q.Add("a")
				order.picky = true
				assert.PanicsWithValue(t, "no a", func() { q.Done("a") })
				order.picky = false
				q.Add("a")
				assert.Equal(t, map[string]int{transcript.Ours: 1, clientGo: 0}[impl], q.Len())
				if q.Len() > 0 {
					_, _ = q.Get()
					q.Add("a")
					order.picky = true
				}
				var drained atomic.Bool
				go func() {
					q.ShutDownWithDrain()
					drained.Store(true)
				}()
				synctest.Wait()
				assert.Equal(t, impl == clientGo, drained.Load())
				if impl != clientGo {
					assert.Panics(t, func() { q.Done("a") })
				}
				synctest.Wait()
				assert.True(t, drained.Load())
			})
		})
	}
}

// A drain of client-go ends at an instant at which no worker has an item, even between two items of
// one worker. Ours ends after the last item.
func TestDifference_DrainEndsBetweenTwoItems(t *testing.T) {
	onBoth(t, func(t *testing.T, impl string, q queue) {
		q.Add("a")
		q.Add("b")
		assert.Equal(t, "a", next(q))
		q.Add("a")
		var drained atomic.Bool
		go func() {
			q.ShutDownWithDrain()
			drained.Store(true)
		}()
		var ended []bool
		for _, item := range []string{"a", "b", "a"} {
			synctest.Wait()
			assert.False(t, impl == transcript.Ours && drained.Load())
			q.Done(item)
			synctest.Wait()
			ended = append(ended, drained.Load())
			_, _ = q.Get()
		}
		want := []bool{false, false, true}
		if impl == clientGo {
			want = []bool{true, true, true}
		}
		assert.Equal(t, want, ended)
	})
}
