// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/clock"
	testingclock "k8s.io/utils/clock/testing"

	"example.com/informerstack/workqueue"
)

// brokenClock is a clock that panics when a timer is made while it is broken.
type brokenClock struct {
	*testingclock.FakeClock
	timersBroken bool
}

func (c *brokenClock) AfterFunc(d time.Duration, f func()) clock.Timer {
	if c.timersBroken {
		panic("broken")
	}
	return c.FakeClock.AfterFunc(d, f)
}

// If the clock panics when a timer is to be set, the next AddAfter sets it.
func TestDelaying_ClockThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &brokenClock{FakeClock: testingclock.NewFakeClock(time.Now())}
		q := workqueue.NewTypedDelayingQueue(workqueue.Config[string]{Clock: c})
		q.AddAfter("a", time.Hour)
		c.timersBroken = true
		assert.Panics(t, func() { q.AddAfter("b", time.Minute) })
		c.timersBroken = false
		q.AddAfter("c", 2*time.Hour)
		q.CheckLaws(t)
		for want, step := range []time.Duration{0, time.Minute, time.Hour, time.Hour} {
			c.Step(step)
			synctest.Wait()
			assert.Equal(t, want, q.Len())
		}
		q.ShutDown()
	})
}

// A metric that panics reaches its caller, and the queue keeps its laws: the item of an Add is
// queued, the item of a Get is with the worker, and the item of a Done is queued again. In a
// program that survives it, no worker waits beside a full queue.
func TestMetrics_ThatPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var armed atomic.Value
		report := func(metric string) {
			if armed.CompareAndSwap(metric, "") {
				panic(metric)
			}
		}
		q := workqueue.NewTyped(workqueue.Config[string]{Metrics: workqueue.Metrics{
			Adds:         func() { report("adds") },
			Latency:      func(time.Duration) { report("latency") },
			WorkDuration: func(time.Duration) { report("work") },
		}})
		defer q.ShutDown()
		panics := func(metric string, call func()) {
			t.Helper()
			armed.Store(metric)
			assert.PanicsWithValue(t, metric, call)
			synctest.Wait()
			q.CheckLaws(t)
		}
		panics("adds", func() { q.Add("a") })
		assert.Equal(t, 1, q.Len())
		panics("latency", func() { q.Get() })
		assert.Equal(t, []string{"a"}, q.Snapshot().Processing)

		got := make(chan string, 2)
		for range 2 { // workers wait
			go func() {
				item, _ := q.Get()
				got <- item
			}()
		}
		synctest.Wait()
		q.Add("a")
		panics("work", func() { q.Done("a") })
		assert.Equal(t, "a", <-got)
		panics("adds", func() { q.Add("b") })
		assert.Equal(t, "b", <-got)
	})
}

// If an owner's queue panics when a due item is added, the crash handlers get the panic. If they
// let the process live, the other items are added, and ShutDown does not hang.
func TestDelaying_OwnQueueThatPanics(t *testing.T) {
	reallyCrash, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	defer func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = reallyCrash, handlers }()
	utilruntime.ReallyCrash = false
	synctest.Test(t, func(t *testing.T) {
		panics := make(chan any, 10)
		utilruntime.PanicHandlers = []func(context.Context, any){
			func(ctx context.Context, r any) {
				klog.FromContext(ctx).Info("handler called")
				panics <- r
			},
		}
		logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
		q := workqueue.NewTypedDelayingQueue(workqueue.Config[string]{
			Queue: newOwnQueue(func(item string) {
				if item == "bad" {
					panic(item)
				}
			}), Logger: &logger,
		})
		q.AddAfter("bad", time.Minute)
		q.AddAfter("same time", time.Minute)
		q.AddAfter("later", time.Hour)
		after(time.Minute)
		assert.Equal(t, "bad", <-panics)
		log := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
		assert.Contains(t, log, "handler called", "the panic is reported to the owner's logger")
		assert.Equal(t, 1, q.Len())
		q.CheckLaws(t)
		after(time.Hour)
		assert.Equal(t, 2, q.Len())
		assert.Empty(t, panics)
		q.ShutDown()
	})
}
