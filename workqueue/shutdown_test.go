// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/workqueue"
)

// ShutDown, drains, AddAfter, AddRateLimited, CancelDelayed, Reschedule and the ends of contexts at
// the same moment: whatever the order, every call returns, every worker ends, nothing waits,
// nothing runs, and the metrics are released once.
func TestShutDown_RacesWithEverything(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 2))
			r := newRecorder()
			q := workqueue.NewTypedRateLimitingQueue(
				workqueue.NewTypedItemExponentialFailureRateLimiter[string](1, time.Microsecond),
				workqueue.Config[string]{
					Metrics: r.metrics("q"), AddSupersedesDelayed: seed%2 == 0})
			var calls, workers sync.WaitGroup
			ctx, cancel := context.WithCancel(t.Context())
			for i := range 4 {
				workers.Go(func() { work(ctx, q, i%2 == 0) })
			}
			for i := range 40 {
				key, delay := fmt.Sprint(random.IntN(10)), time.Duration(random.IntN(3))
				call := []func(){
					func() { q.AddAfter(key, delay*time.Microsecond) },
					func() { q.AddAfter(key, delay*time.Microsecond) },
					func() { q.AddRateLimited(key) },
					func() { q.Add(key) },
					func() { q.CancelDelayed(key) },
					func() { q.Snapshot() },
					func() { q.Reschedule(key, delay*time.Microsecond) },
					func() { _, _ = q.Finish(ctx) },
					func() { _, _ = q.HandBack(ctx) },
					q.ShutDownWithDrain,
					cancel,
				}[random.IntN(11)]
				if i > 20 && random.IntN(10) == 0 {
					call = q.ShutDown
				}
				start := time.Duration(random.IntN(5)) * time.Microsecond
				calls.Go(func() {
					time.Sleep(start)
					call()
				})
			}
			time.Sleep(time.Millisecond)
			q.ShutDown() // ends the drains
			calls.Wait()
			workers.Wait()
			cancel()
			synctest.Wait()
			assert.Zero(t, goroutines())
			assert.Empty(t, q.Snapshot().Waiting)
			assert.Empty(t, q.Snapshot().Processing)
			assert.EqualValues(t, 1, r.value("released", "q"))
			q.CheckLaws(t)
		})
	}
}

// An AddAfter that a ShutDown overtakes leaves no item and no timer behind.
func TestShutDown_OvertakesAddAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q *workqueue.TypedDelayingQueue[string]
		q = workqueue.NewTypedDelayingQueue(workqueue.Config[string]{
			Metrics: workqueue.Metrics{Retries: func() { q.ShutDown() }}})
		q.AddAfter("a", time.Minute) // calls Retries after it has asked for a shutdown
		q.CheckLaws(t)
		assert.Empty(t, q.Snapshot().Waiting)
		after(time.Hour)
		assert.Zero(t, q.Len())
	})
}

// work handles items until the queue is shut down or, with watchContext, ctx ends.
func work(ctx context.Context, q *workqueue.TypedRateLimitingQueue[string], watchContext bool) {
	if !watchContext {
		ctx = context.Background()
	}
	for {
		item, shutdown := q.GetWithContext(ctx)
		if shutdown {
			return
		}
		time.Sleep(time.Microsecond)
		q.Done(item)
	}
}

// ending is a context at the moment in which Err has an error and Done is not yet closed.
type ending struct {
	context.Context
	ended atomic.Bool
}

func (c *ending) Done() <-chan struct{} { return make(chan struct{}) }

func (c *ending) Err() error {
	if c.ended.Load() {
		return context.Canceled
	}
	return nil
}

// Q3: a worker that was woken for an item leaves because its context ends: the item wakes the next
// worker.
func TestGetWithContext_TheNextWorkerGetsTheItem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.NewTyped(workqueue.Config[string]{})
		ctx := &ending{Context: t.Context()}
		left, got := make(chan bool, 1), make(chan string, 1)
		go func() {
			_, shutdown := q.GetWithContext(ctx)
			left <- shutdown
		}()
		synctest.Wait()
		go func() {
			item, _ := q.Get()
			got <- item
		}()
		synctest.Wait()
		ctx.ended.Store(true)
		q.Add("a")
		synctest.Wait()
		assert.True(t, <-left)
		assert.Len(t, got, 1)
		q.ShutDown()
	})
}

// With DrainProcessingOnly a drain waits for the workers, and not for what is queued.
func TestShutDown_DrainProcessingOnly(t *testing.T) {
	for _, only := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			q := workqueue.NewTyped(workqueue.Config[string]{DrainProcessingOnly: only})
			q.Add("a")
			q.Add("b")
			first, _ := q.Get()
			drained := drain(q)
			assert.False(t, drained())
			q.Done(first)
			assert.Equal(t, only, drained())
			assert.Equal(t, "b", serve(q))
			assert.True(t, drained())
		})
	}
}

// Both ends of a delaying queue wait until a due item was handed over, and then release the
// metrics.
func TestShutDown_WaitsForADueItem(t *testing.T) {
	type delaying = workqueue.TypedDelayingQueue[string]
	for _, end := range []func(q *delaying){(*delaying).ShutDown, (*delaying).ShutDownWithDrain} {
		synctest.Test(t, func(t *testing.T) {
			began, released := time.Now(), time.Duration(0)
			q := workqueue.NewTypedDelayingQueue(workqueue.Config[string]{
				Queue:   newOwnQueue(func(string) { time.Sleep(time.Second) }),
				Metrics: workqueue.Metrics{Released: func() { released = time.Since(began) }},
			})
			q.AddAfter("a", time.Second)
			after(1500 * time.Millisecond)
			end(q)
			assert.Equal(t, 2*time.Second, time.Since(began))
			assert.Equal(t, 2*time.Second, released)
		})
	}
}

// The queue below a delaying queue is shut down once, and again only to end a drain.
func TestShutDown_OfTheQueueBelow(t *testing.T) {
	for _, drainFirst := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			below := newOwnQueue(nil)
			q := ours(workqueue.Config[string]{Queue: below})
			q.Add("a")
			_, _ = q.Get()
			want := 1
			if !drainFirst {
				q.ShutDown()
				assert.Equal(t, 1, below.shutDowns)
				want = 2
			}
			drained := drain(q)
			assert.False(t, drained())
			for range 2 {
				q.ShutDown()
				assert.True(t, drained())
				assert.Equal(t, want, below.shutDowns)
			}
		})
	}
}
