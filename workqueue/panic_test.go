// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"context"
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

// brokenQueue panics when "bad" is added.
type brokenQueue struct{ *workqueue.Typed[string] }

func (q brokenQueue) Add(item string) {
	if item == "bad" {
		panic(item)
	}
	q.Typed.Add(item)
}

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
// queued, and the item of a Get is with the worker.
func TestMetrics_ThatPanic(t *testing.T) {
	broken := true
	report := func() {
		if broken {
			panic("broken")
		}
	}
	q := workqueue.NewTyped(workqueue.Config[string]{Metrics: workqueue.Metrics{
		Adds:         report,
		Latency:      func(time.Duration) { report() },
		WorkDuration: func(time.Duration) { report() },
	}})
	assert.Panics(t, func() { q.Add("a") })
	q.CheckLaws(t)
	assert.Equal(t, 1, q.Len())
	assert.Panics(t, func() { q.Get() })
	q.CheckLaws(t)
	assert.Equal(t, []string{"a"}, q.Snapshot().Processing)
	assert.Panics(t, func() { q.Done("a") })
	q.CheckLaws(t)
	broken = false
	q.Add("a")
	item, _ := q.Get()
	assert.Equal(t, "a", item)
	q.Done(item)
	q.ShutDown()
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
			Queue: brokenQueue{workqueue.NewTyped(workqueue.Config[string]{})}, Logger: &logger,
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
