// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 this file tests the deprecated constructors

package workqueue_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	reference "k8s.io/client-go/util/workqueue"
	testingclock "k8s.io/utils/clock/testing"

	"example.com/informerstack/compat/workqueue"
)

// queue has the methods of the result of every constructor; some results have more.
type queue = workqueue.TypedInterface[any]

// constructors are all ways to make a queue, in both packages, with the metrics that the provider
// of the process receives.
var constructors = []struct {
	name    string
	ours    func() queue
	theirs  func() queue
	metrics string
}{
	{"New", func() queue { return workqueue.New() },
		func() queue { return reference.New() }, ""},
	{"NewNamed", func() queue { return workqueue.NewNamed("q") },
		func() queue { return reference.NewNamed("q") }, now},
	{"NewWithConfig",
		func() queue { return workqueue.NewWithConfig(workqueue.QueueConfig{Name: "q"}) },
		func() queue { return reference.NewWithConfig(reference.QueueConfig{Name: "q"}) }, now},
	{"NewTyped", func() queue { return workqueue.NewTyped[any]() },
		func() queue { return reference.NewTyped[any]() }, ""},
	{"NewTypedWithConfig", func() queue {
		return workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[any]{Name: "q"})
	}, func() queue {
		return reference.NewTypedWithConfig(reference.TypedQueueConfig[any]{Name: "q"})
	}, now},
	{"an order", func() queue {
		order := workqueue.DefaultQueue[any]()
		return workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[any]{Queue: order})
	}, func() queue {
		order := reference.DefaultQueue[any]()
		return reference.NewTypedWithConfig(reference.TypedQueueConfig[any]{Queue: order})
	}, ""},

	{"NewDelayingQueue", func() queue { return workqueue.NewDelayingQueue() },
		func() queue { return reference.NewDelayingQueue() }, ""},
	{"NewNamedDelayingQueue", func() queue { return workqueue.NewNamedDelayingQueue("q") },
		func() queue { return reference.NewNamedDelayingQueue("q") }, later},
	{"NewDelayingQueueWithConfig", func() queue {
		return workqueue.NewDelayingQueueWithConfig(workqueue.DelayingQueueConfig{Name: "q"})
	}, func() queue {
		return reference.NewDelayingQueueWithConfig(reference.DelayingQueueConfig{Name: "q"})
	}, later},
	{"NewDelayingQueueWithCustomQueue", func() queue {
		return workqueue.NewDelayingQueueWithCustomQueue(workqueue.NewNamed("inner"), "q")
	}, func() queue {
		return reference.NewDelayingQueueWithCustomQueue(reference.NewNamed("inner"), "q")
	}, strings.ReplaceAll(now, "q/", "inner/") + " q/retries"},
	{"no custom queue", func() queue { return workqueue.NewDelayingQueueWithCustomQueue(nil, "q") },
		func() queue { return reference.NewDelayingQueueWithCustomQueue(nil, "q") }, later},
	{"NewTypedDelayingQueue", func() queue { return workqueue.NewTypedDelayingQueue[any]() },
		func() queue { return reference.NewTypedDelayingQueue[any]() }, ""},
	{"TypedNewDelayingQueue", func() queue { return workqueue.TypedNewDelayingQueue[any]() },
		func() queue { return reference.TypedNewDelayingQueue[any]() }, ""},
	{"NewTypedDelayingQueueWithConfig", func() queue {
		config := workqueue.TypedDelayingQueueConfig[any]{Name: "q"}
		return workqueue.NewTypedDelayingQueueWithConfig(config)
	}, func() queue {
		config := reference.TypedDelayingQueueConfig[any]{Name: "q"}
		return reference.NewTypedDelayingQueueWithConfig(config)
	}, later},

	{"NewRateLimitingQueue", func() queue {
		return workqueue.NewRateLimitingQueue(workqueue.DefaultControllerRateLimiter())
	}, func() queue {
		return reference.NewRateLimitingQueue(reference.DefaultControllerRateLimiter())
	}, ""},
	{"NewNamedRateLimitingQueue", func() queue {
		return workqueue.NewNamedRateLimitingQueue(workqueue.DefaultItemBasedRateLimiter(), "q")
	}, func() queue {
		return reference.NewNamedRateLimitingQueue(reference.DefaultItemBasedRateLimiter(), "q")
	}, later},
	{"NewRateLimitingQueueWithConfig", func() queue {
		limiter := workqueue.NewItemExponentialFailureRateLimiter(time.Second, time.Minute)
		return workqueue.NewRateLimitingQueueWithConfig(limiter,
			workqueue.RateLimitingQueueConfig{Name: "q"})
	}, func() queue {
		limiter := reference.NewItemExponentialFailureRateLimiter(time.Second, time.Minute)
		return reference.NewRateLimitingQueueWithConfig(limiter,
			reference.RateLimitingQueueConfig{Name: "q"})
	}, later},
	{"NewRateLimitingQueueWithDelayingInterface", func() queue {
		limiter := workqueue.NewItemFastSlowRateLimiter(time.Second, time.Minute, 1)
		return workqueue.NewRateLimitingQueueWithDelayingInterface(
			workqueue.NewNamedDelayingQueue("inner"), limiter)
	}, func() queue {
		limiter := reference.NewItemFastSlowRateLimiter(time.Second, time.Minute, 1)
		return reference.NewRateLimitingQueueWithDelayingInterface(
			reference.NewNamedDelayingQueue("inner"), limiter)
	}, strings.ReplaceAll(later, "q/", "inner/")},
	{"NewTypedRateLimitingQueue", func() queue {
		return workqueue.NewTypedRateLimitingQueue(
			workqueue.DefaultTypedControllerRateLimiter[any]())
	}, func() queue {
		return reference.NewTypedRateLimitingQueue(
			reference.DefaultTypedControllerRateLimiter[any]())
	}, ""},
	{"NewTypedRateLimitingQueueWithConfig", func() queue {
		limiter := workqueue.NewMaxOfRateLimiter(workqueue.NewItemFastSlowRateLimiter(1, 2, 1),
			&workqueue.MaxOfRateLimiter{})
		return workqueue.NewTypedRateLimitingQueueWithConfig(limiter,
			workqueue.TypedRateLimitingQueueConfig[any]{Name: "q"})
	}, func() queue {
		limiter := reference.NewMaxOfRateLimiter(reference.NewItemFastSlowRateLimiter(1, 2, 1),
			&reference.MaxOfRateLimiter{})
		return reference.NewTypedRateLimitingQueueWithConfig(limiter,
			reference.TypedRateLimitingQueueConfig[any]{Name: "q"})
	}, later},
	{"a delay that is cut", func() queue {
		limiter := workqueue.NewItemExponentialFailureRateLimiter(time.Hour, time.Hour)
		return workqueue.NewRateLimitingQueue(
			workqueue.NewWithMaxWaitRateLimiter(limiter, time.Minute))
	}, func() queue {
		limiter := reference.NewItemExponentialFailureRateLimiter(time.Hour, time.Hour)
		return reference.NewRateLimitingQueue(
			reference.NewWithMaxWaitRateLimiter(limiter, time.Minute))
	}, ""},
}

// The metrics of a plain queue and of a delaying one.
const (
	now   = "q/adds q/depth q/latency q/longest q/unfinished q/work"
	later = "q/adds q/depth q/latency q/longest q/retries q/unfinished q/work"
)

func TestConstructors(t *testing.T) {
	for _, c := range constructors {
		t.Run(c.name, func(t *testing.T) {
			lives := map[string]string{}
			for impl, construct := range map[string]func() queue{ours: c.ours, clientGo: c.theirs} {
				synctest.Test(t, func(t *testing.T) {
					lives[impl] = life(construct())
				})
				assert.Equal(t, c.metrics, global[impl].take(), "metrics of %s", impl)
			}
			assert.Equal(t, lives[clientGo], lives[ours])
		})
	}
}

// life calls every method of a queue, and returns the items that it delivered, with their times.
func life(q queue) string {
	start, story := time.Now(), ""
	work := func() {
		item, _ := q.Get()
		story += fmt.Sprintf("%v after %v; ", item, time.Since(start))
		q.Done(item)
	}
	q.Add("now")
	q.Add("now")
	work()
	if q, ok := q.(workqueue.DelayingInterface); ok {
		q.AddAfter("later", time.Minute)
		q.AddAfter("sooner", time.Second)
		work()
		work()
	}
	if q, ok := q.(workqueue.RateLimitingInterface); ok {
		for range 3 {
			q.AddRateLimited("again")
			work()
		}
		story += fmt.Sprintf("%d failures, ", q.NumRequeues("again"))
		q.Forget("again")
		story += fmt.Sprintf("then %d; ", q.NumRequeues("again"))
	}
	time.Sleep(time.Second) // the gauges are set twice a second
	q.ShutDown()
	q.Add("too late")
	_, shutdown := q.Get()
	return story + fmt.Sprintf("shutdown: %v", shutdown)
}

// The first provider is used, for queues that are created after it is set.
func TestSetProvider(t *testing.T) {
	for impl, q := range early {
		t.Run("impl="+impl, func(t *testing.T) {
			q.Add("a")
			q.Get()
			q.Done("a")
			q.ShutDown()
			assert.Empty(t, global[impl].take())
			assert.Empty(t, second[impl].take())
		})
	}
}

// A queue's own provider is used instead of that of the process.
func TestSetProvider_OwnProviderWins(t *testing.T) {
	own := &recorder{}
	ourOwn, theirOwn := oursProvider{own}, referenceProvider{own}
	for _, c := range []struct {
		name    string
		make    func() queue
		metrics string
	}{
		{"typed/impl=ours", func() queue {
			return workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[any]{
				Name: "q", MetricsProvider: ourOwn})
		}, now},
		{"typed/impl=client-go", func() queue {
			return reference.NewTypedWithConfig(reference.TypedQueueConfig[any]{
				Name: "q", MetricsProvider: theirOwn})
		}, now},
		{"delaying/impl=ours", func() queue {
			return workqueue.NewTypedDelayingQueueWithConfig(
				workqueue.TypedDelayingQueueConfig[any]{Name: "q", MetricsProvider: ourOwn})
		}, later},
		{"delaying/impl=client-go", func() queue {
			return reference.NewTypedDelayingQueueWithConfig(
				reference.TypedDelayingQueueConfig[any]{Name: "q", MetricsProvider: theirOwn})
		}, later},
		{"rate limiting/impl=ours", func() queue {
			return workqueue.NewTypedRateLimitingQueueWithConfig(
				workqueue.DefaultTypedItemBasedRateLimiter[any](),
				workqueue.TypedRateLimitingQueueConfig[any]{Name: "q", MetricsProvider: ourOwn})
		}, later},
		{"rate limiting/impl=client-go", func() queue {
			return reference.NewTypedRateLimitingQueueWithConfig(
				reference.DefaultTypedItemBasedRateLimiter[any](),
				reference.TypedRateLimitingQueueConfig[any]{Name: "q", MetricsProvider: theirOwn})
		}, later},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(*testing.T) { life(c.make()) })
			assert.Equal(t, c.metrics, own.take())
			assert.Empty(t, global[ours].take())
			assert.Empty(t, global[clientGo].take())
		})
	}
}

// A provider may have metrics that client-go does not have.
func TestMetrics_WaitingItems(t *testing.T) {
	own := &recorder{}
	synctest.Test(t, func(*testing.T) {
		life(workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[any]{
			Name: "q", MetricsProvider: waitingProvider{oursProvider{own}}}))
	})
	assert.Equal(t, "q/adds q/depth q/latency q/longest q/longest wait q/retries q/unfinished "+
		"q/waiting q/work", own.take())
}

// clocked are the kinds of queues with a clock option, in both packages.
var clocked = map[string]func(*testingclock.FakeClock) workqueue.DelayingInterface{
	"NewDelayingQueueWithCustomClock": func(c *testingclock.FakeClock) delaying {
		return workqueue.NewDelayingQueueWithCustomClock(c, "")
	},
	"DelayingQueueConfig": func(c *testingclock.FakeClock) delaying {
		return workqueue.NewDelayingQueueWithConfig(workqueue.DelayingQueueConfig{Clock: c})
	},
	"RateLimitingQueueConfig": func(c *testingclock.FakeClock) delaying {
		return workqueue.NewRateLimitingQueueWithConfig(nil,
			workqueue.RateLimitingQueueConfig{Clock: c})
	},
	"TypedRateLimitingQueueConfig": func(c *testingclock.FakeClock) delaying {
		return workqueue.NewTypedRateLimitingQueueWithConfig(nil,
			workqueue.TypedRateLimitingQueueConfig[any]{Clock: c})
	},
	"client-go's NewDelayingQueueWithCustomClock": func(c *testingclock.FakeClock) delaying {
		return reference.NewDelayingQueueWithCustomClock(c, "")
	},
	"client-go's TypedRateLimitingQueueConfig": func(c *testingclock.FakeClock) delaying {
		return reference.NewTypedRateLimitingQueueWithConfig(nil,
			reference.TypedRateLimitingQueueConfig[any]{Clock: c})
	},
}

type delaying = workqueue.DelayingInterface

// onEachClock runs f on each of them, in a bubble.
func onEachClock(t *testing.T, f func(t *testing.T, q delaying, clock *testingclock.FakeClock)) {
	for name, construct := range clocked {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := testingclock.NewFakeClock(time.Now())
				q := construct(clock)
				defer q.ShutDown()
				f(t, q, clock)
			})
		})
	}
}

// A custom clock decides when an item is due.
func TestCustomClock(t *testing.T) {
	onEachClock(t, func(t *testing.T, q delaying, clock *testingclock.FakeClock) {
		q.AddAfter("a", time.Hour)
		time.Sleep(2 * time.Hour)
		assert.Zero(t, q.Len())
		clock.Step(time.Hour)
		synctest.Wait()
		assert.Equal(t, 1, q.Len())
	})
}

// A delaying queue registers the same waiters with its clock as client-go's, so a test that waits
// until a fake clock has waiters does not hang, and an item is added when the clock is stepped.
func TestFakeClock_HasWaiters(t *testing.T) {
	onEachClock(t, func(t *testing.T, q delaying, clock *testingclock.FakeClock) {
		waiters := func() int { synctest.Wait(); return clock.Waiters() }
		assert.Equal(t, 1, waiters())
		q.AddAfter("a", time.Minute)
		assert.Equal(t, 2, waiters())
		clock.Step(time.Minute)
		assert.Equal(t, 1, waiters())
		assert.Equal(t, 1, q.Len())
		for i := range 10 {
			q.AddAfter(fmt.Sprint(i), time.Hour)
		}
		assert.Equal(t, 2, waiters())
	})
}
