// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	reference "k8s.io/client-go/util/workqueue"
	testingclock "k8s.io/utils/clock/testing"

	"example.com/informerstack/compat/workqueue"
)

// onEachQueue runs f on every kind of queue of both packages, each in a bubble.
func onEachQueue(t *testing.T, f func(t *testing.T, q queue)) {
	for name, construct := range map[string]func() queue{
		"Typed/impl=ours":      func() queue { return workqueue.NewTyped[any]() },
		"Typed/impl=client-go": func() queue { return reference.NewTyped[any]() },
		"delaying/impl=ours":   func() queue { return workqueue.NewTypedDelayingQueue[any]() },
		"delaying/impl=client-go": func() queue {
			return reference.NewTypedDelayingQueue[any]()
		},
		"rate limiting/impl=ours": func() queue {
			return workqueue.NewTypedRateLimitingQueue(
				workqueue.DefaultTypedControllerRateLimiter[any]())
		},
		"rate limiting/impl=client-go": func() queue {
			return reference.NewTypedRateLimitingQueue(
				reference.DefaultTypedControllerRateLimiter[any]())
		},
		"with a clock/impl=ours": func() queue {
			return workqueue.NewDelayingQueueWithCustomClock(testingclock.NewFakeClock(time.Now()),
				"")
		},
		"with a clock/impl=client-go": func() queue {
			return reference.NewDelayingQueueWithCustomClock(testingclock.NewFakeClock(time.Now()),
				"")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := construct()
				defer q.ShutDown()
				f(t, q)
			})
		})
	}
}

// drain starts ShutDownWithDrain and returns a function that reports whether it has returned.
func drain(q queue) (drained func() bool) {
	var returned atomic.Bool
	go func() {
		q.ShutDownWithDrain()
		returned.Store(true)
	}()
	return func() bool {
		synctest.Wait()
		return returned.Load()
	}
}

// Items are queued and no worker runs: a program that drains its queue must not hang.
func TestDrain_QueuedAndNoWorker(t *testing.T) {
	onEachQueue(t, func(t *testing.T, q queue) {
		q.Add("a")
		q.Add("b")
		assert.True(t, drain(q)())
		assert.Equal(t, 2, q.Len(), "the items stay")
		item, shutdown := q.Get()
		assert.Equal(t, "a", item)
		assert.False(t, shutdown)
	})
}

func TestDrain_Processing(t *testing.T) {
	onEachQueue(t, func(t *testing.T, q queue) {
		for i := range 2 {
			q.Add(i)
			q.Get()
		}
		drained := drain(q)
		assert.False(t, drained())
		q.Done(0)
		assert.False(t, drained())
		q.Done(1)
		assert.True(t, drained())
	})
}

// A worker has an item, which was added again, and others are queued: the drain waits for Done.
func TestDrain_QueuedAndProcessing(t *testing.T) {
	onEachQueue(t, func(t *testing.T, q queue) {
		q.Add("a")
		q.Get()
		q.Add("a")
		q.Add("b")
		drained := drain(q)
		assert.False(t, drained())
		q.Done("a")
		assert.True(t, drained())
		assert.Equal(t, 2, q.Len())
	})
}

func TestDrain_ShutDownEndsIt(t *testing.T) {
	onEachQueue(t, func(t *testing.T, q queue) {
		q.Add("a")
		q.Get()
		q.Add("b")
		drained := drain(q)
		assert.False(t, drained())
		q.ShutDown()
		assert.True(t, drained())
		q.Done("a")
	})
}

// A drain does not wait for delayed items.
func TestDrain_Waiting(t *testing.T) {
	onEachQueue(t, func(t *testing.T, q queue) {
		if q, ok := q.(workqueue.DelayingInterface); ok {
			q.AddAfter("a", time.Hour)
		}
		assert.True(t, drain(q)())
		time.Sleep(2 * time.Hour)
		assert.Zero(t, q.Len())
	})
}
