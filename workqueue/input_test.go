// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/time/rate"
	reference "k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"example.com/informerstack/workqueue"
)

// An item that cannot be a map key panics as it does in client-go, and the queue works on.
func TestInput_UnhashableItem(t *testing.T) {
	type delaying = workqueue.TypedDelayingInterface[any]
	ours := func() delaying { return workqueue.NewTypedDelayingQueue(workqueue.Config[any]{}) }
	theirs := func() delaying { return reference.NewTypedDelayingQueue[any]() }
	onEach(t, ours, theirs, func(t *testing.T, impl string, q delaying) {
		assert.Panics(t, func() { q.Add([]int{1}) })
		assert.Panics(t, func() { q.Done([]int{1}) })
		if impl != clientGo { // it ends the process, in a goroutine of its own
			assert.Panics(t, func() { q.AddAfter([]int{1}, time.Hour) })
		}
		q.AddAfter("b", time.Hour)
		q.Add("a")
		assert.Equal(t, 1, q.Len())
	})
}

// NaN is not equal to itself: every Add is another item, and no Done finds its own.
func TestInput_NaN(t *testing.T) {
	type floats = workqueue.TypedInterface[float64]
	ours := func() floats { return workqueue.NewTyped(workqueue.Config[float64]{}) }
	theirs := func() floats { return reference.NewTyped[float64]() }
	for _, q := range []floats{ours(), theirs()} {
		q.Add(math.NaN())
		q.Add(math.NaN())
		assert.Equal(t, 2, q.Len())
		for range 2 {
			assert.True(t, math.IsNaN(serve(q)))
		}
		assert.Equal(t, 0, q.Len())
		q.Add(0.0)
		q.Add(math.Copysign(0, -1)) // equal, although other bits
		assert.Equal(t, 1, q.Len())
		q.ShutDown()
	}
}

func TestInput_ZeroItem(t *testing.T) {
	onBoth(t, func(t *testing.T, impl string, q queue) {
		q.Add("")
		item, shutdown := q.Get()
		assert.Empty(t, item)
		assert.False(t, shutdown)
		q.Done("")
	})
}

// The longest delay there is, and what a bucket without tokens answers: the item waits, nothing
// overflows.
func TestInput_LongestDelay(t *testing.T) {
	onBoth(t, func(t *testing.T, impl string, q queue) {
		q.AddAfter("a", math.MaxInt64)
		q.AddAfter("b", rate.InfDuration)
		q.AddAfter("c", math.MinInt64)
		after(1000 * time.Hour)
		assert.Equal(t, "c", nextAll(q))
	})
}

// A bucket that never gains a token delays for ever when it is empty. One with an infinite rate
// never delays.
func TestInput_BucketWithoutTokens(t *testing.T) {
	for _, c := range []struct {
		qps   float64
		burst int
		want  []time.Duration
	}{
		{0, 2, []time.Duration{0, 0, rate.InfDuration}},
		{-1, 2, []time.Duration{0, 0, rate.InfDuration}},
		{math.Inf(-1), 1, []time.Duration{0, rate.InfDuration}},
		{math.NaN(), 1, []time.Duration{0, rate.InfDuration}},
		{10, 0, []time.Duration{rate.InfDuration}},
		{10, -1, []time.Duration{rate.InfDuration}},
		{math.Inf(1), 0, []time.Duration{0, 0, 0}},
		{math.MaxFloat64, 0, []time.Duration{0, 0, 0}},
		{1, 1, []time.Duration{0, time.Second, 2 * time.Second}},
	} {
		synctest.Test(t, func(t *testing.T) {
			limiter := workqueue.NewTypedBucketRateLimiter[string](c.qps, c.burst)
			for _, want := range c.want {
				assert.Equal(t, want, limiter.When("a"), "qps %v, burst %v", c.qps, c.burst)
			}
			assert.Zero(t, limiter.NumRequeues("a"))
			limiter.Forget("a")
		})
	}
}

// Without a limiter everything works but what asks it; that panics, as in client-go. A snapshot
// shows no failures.
func TestInput_NilLimiter(t *testing.T) {
	type limiting = workqueue.TypedRateLimitingQueue[string]
	ours := func() queue {
		return workqueue.NewTypedRateLimitingQueue(nil, workqueue.Config[string]{})
	}
	theirs := func() queue { return reference.NewTypedRateLimitingQueue[string](nil) }
	onEach(t, ours, theirs, func(t *testing.T, impl string, q queue) {
		q.AddAfter("a", time.Minute)
		assert.Panics(t, func() { q.AddRateLimited("a") })
		assert.Panics(t, func() { q.Forget("a") })
		assert.Panics(t, func() { q.NumRequeues("a") })
		if q, ok := q.(*limiting); ok {
			assert.Equal(t, workqueue.Snapshot[string]{Waiting: []workqueue.Waiting[string]{
				{Item: "a", Due: time.Now().Add(time.Minute)}}}, q.Snapshot())
		}
		after(time.Minute)
		assert.Equal(t, 1, q.Len())
	})
}

// A queue that was shut down ignores every call, another ShutDown included
// (kubernetes/kubernetes#77170).
func TestInput_AfterShutDown(t *testing.T) {
	onBoth(t, func(t *testing.T, impl string, q queue) {
		q.AddAfter("z", time.Minute)
		q.ShutDown()
		q.Add("a")
		q.AddAfter("b", 0)
		q.AddAfter("c", time.Second)
		q.AddRateLimited("d")
		q.Done("e")
		q.Forget("f")
		after(time.Hour)
		assert.Equal(t, "shutdown", next(q))
		assert.Equal(t, 1, q.NumRequeues("d"), "the limiter counts nevertheless")
		q.ShutDown()
		q.ShutDownWithDrain()
	})
}

// An order of the owner's own: last in, first out, and a touch brings an item forward.
func TestQueue_OwnOrder(t *testing.T) {
	config := func() workqueue.Config[string] {
		return workqueue.Config[string]{Order: &order[string]{lifo: true}}
	}
	onBothWith(t, config, func(t *testing.T, impl string, q queue) {
		for _, item := range []string{"a", "b", "c", "a"} {
			q.Add(item)
		}
		assert.Equal(t, 3, q.Len())
		checkLaws(t, q)
		assert.Equal(t, "a", next(q), "it was touched")
		q.Add("a") // a worker has it: no touch, no push
		assert.Equal(t, 2, q.Len())
		assert.Equal(t, "c", next(q))
		q.Done("a")
		assert.Equal(t, "a", next(q))
	})
}

// An order that hands out what it was never given, or twice what it was given once: the worker gets
// it.
func TestQueue_OrderOfStrangeItems(t *testing.T) {
	var own *order[string]
	config := func() workqueue.Config[string] {
		own = &order[string]{lifo: true}
		return workqueue.Config[string]{Order: own}
	}
	onBothWith(t, config, func(t *testing.T, impl string, q queue) {
		q.Add("a")
		own.items = append(own.items, "stranger", "a")
		for _, want := range []string{"a", "stranger", "a"} {
			assert.Equal(t, want, next(q))
			checkLaws(t, q)
		}
		assert.Zero(t, q.Len())
		q.Done("a")
		q.Done("stranger")
		q.ShutDownWithDrain() // nothing is left
	})
}

// An order that panics does not keep the lock. The queue is as it was before the call, but a Done
// ends, and the Add that came before it is lost.
func TestQueue_OrderThatPanics(t *testing.T) {
	own := &order[string]{lifo: true}
	q := workqueue.NewTyped(workqueue.Config[string]{Order: own})
	broken := func(call func()) {
		t.Helper()
		own.broken = true
		assert.PanicsWithValue(t, "broken", call)
		own.broken = false
		q.CheckLaws(t)
	}
	broken(func() { q.Add("a") }) // Push
	q.Add("a")
	assert.Equal(t, 1, q.Len(), "the Add before it did not make it dirty")
	broken(func() { q.Add("a") }) // Touch
	broken(func() { q.Len() })
	broken(func() { q.Get() })
	item, _ := q.Get()
	assert.Equal(t, "a", item)
	q.Add("a")
	broken(func() { q.Done("a") }) // Push
	assert.Equal(t, workqueue.Snapshot[string]{Taken: 1}, q.Snapshot(), "no worker has it")
	q.Add("a")
	assert.Equal(t, []string{"a"}, own.items)
}

// A clock of the owner's own moves what waits: one that can call back, and one that has timers
// alone.
func TestDelaying_OwnClock(t *testing.T) {
	for name, wrap := range map[string]func(clock.WithTicker) clock.WithTicker{
		"with AfterFunc": func(c clock.WithTicker) clock.WithTicker { return c },
		"with timers": func(c clock.WithTicker) clock.WithTicker {
			return struct{ clock.WithTicker }{c}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fake := testingclock.NewFakeClock(time.Now())
				q := workqueue.NewTypedDelayingQueue(workqueue.Config[string]{Clock: wrap(fake)})
				q.AddAfter("late", time.Hour)
				q.AddAfter("b", 2*time.Second)
				q.AddAfter("a", time.Second)
				require.Equal(t, 1, fake.Waiters())
				for _, want := range []string{"a", "b"} {
					fake.Step(time.Second)
					synctest.Wait()
					q.CheckLaws(t)
					require.Equal(t, 1, q.Len())
					assert.Equal(t, want, serve(q))
				}
				q.ShutDown()
				assert.Zero(t, fake.Waiters())
				synctest.Wait()
				assert.Zero(t, goroutines())
			})
		})
	}
}

// steppingClock is a fake clock that is stepped once, right after it was read.
type steppingClock struct {
	*testingclock.FakeClock
	step time.Duration
}

func (c *steppingClock) Now() time.Time {
	defer c.stepOnce()
	return c.FakeClock.Now()
}

func (c *steppingClock) Since(t time.Time) time.Duration {
	defer c.stepOnce()
	return c.FakeClock.Since(t)
}

func (c *steppingClock) stepOnce() {
	step := c.step
	c.step = 0
	c.FakeClock.Step(step)
}

// The clock is stepped while AddAfter runs, so that the item is due when the timer is to be set:
// the item is added without another step.
func TestDelaying_ClockIsSteppedInAddAfter(t *testing.T) {
	var clock *steppingClock
	config := func() workqueue.Config[string] {
		clock = &steppingClock{FakeClock: testingclock.NewFakeClock(time.Now())}
		return workqueue.Config[string]{Clock: clock}
	}
	onBothWith(t, config, func(t *testing.T, impl string, q queue) {
		synctest.Wait()
		clock.step = 2 * time.Second
		q.AddAfter("a", time.Second)
		synctest.Wait()
		assert.Equal(t, 1, q.Len())
	})
}

// A clock of the owner's own is stepped and set back at random, also behind the time when the queue
// was made: items are due when they are in client-go.
func TestDelaying_ClockGoesBack(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			clocks := []*testingclock.FakeClock{
				testingclock.NewFakeClock(time.Now()), testingclock.NewFakeClock(time.Now()),
			}
			queues := []queue{
				ours(workqueue.Config[string]{Clock: clocks[0]}),
				theirs(workqueue.Config[string]{Clock: clocks[1]}, nil),
			}
			for i := range 60 {
				op, delay := random.IntN(9), time.Duration(random.IntN(100))*time.Second
				if random.IntN(20) == 0 {
					delay = math.MaxInt64
				}
				synctest.Wait()
				require.Equal(t, queues[1].Len(), queues[0].Len())
				for j, q := range queues {
					switch now := clocks[j].Now(); {
					case op < 4:
						q.AddAfter(fmt.Sprint(i%20), delay)
					case op < 8:
						clocks[j].SetTime(now.Add(delay % time.Minute))
					default:
						clocks[j].SetTime(now.Add(-delay % time.Hour))
					}
				}
			}
			for _, q := range queues {
				q.ShutDown()
			}
		})
	}
}

// An owner's queue below: the queue around it returns its items and its snapshot.
func TestDelaying_OwnQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		below := workqueue.NewTyped(workqueue.Config[string]{})
		q := ours(workqueue.Config[string]{Queue: below})
		defer q.ShutDown()
		below.Add("a")
		q.AddRateLimited("b")
		ctx, cancel := context.WithCancel(t.Context())
		item, shutdown := q.GetWithContext(ctx)
		assert.Equal(t, "a", item)
		assert.False(t, shutdown)
		cancel()
		_, shutdown = q.GetWithContext(ctx)
		assert.True(t, shutdown)
		snapshot := q.Snapshot()
		assert.Equal(t, []string{"a"}, snapshot.Processing)
		assert.Equal(t, "b", snapshot.Waiting[0].Item)
		assert.Equal(t, 1, snapshot.Waiting[0].Failures)
		assert.Equal(t, 1, snapshot.Limited)
		assert.True(t, q.CancelDelayed("b"))
		assert.False(t, q.CancelDelayed("b"))
		q.CheckLaws(t)
	})
}
