// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"fmt"
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
		drained := drain(q)
		assert.Equal(t, impl == clientGo, drained())
		assert.Equal(t, "a", next(q))
		q.Done("a")
		assert.True(t, drained())
	})
}

// A delaying queue of client-go hands its first ShutDown alone to the queue below.
func TestDifference_ASecondShutDownEndsADrain(t *testing.T) {
	onBoth(t, func(t *testing.T, impl string, q queue) {
		q.Add("a")
		assert.Equal(t, "a", next(q))
		q.ShutDown()
		drained := drain(q)
		assert.False(t, drained())
		q.ShutDown()
		assert.Equal(t, impl == transcript.Ours, drained())
		q.Done("a")
	})
}

// A drain of client-go ends when no worker has an item, even between two items of
// one worker. Ours ends after the last item (kubernetes/kubernetes#101928: even if that was added
// again while a worker had it).
func TestDifference_DrainEndsBetweenTwoItems(t *testing.T) {
	onBoth(t, func(t *testing.T, impl string, q queue) {
		q.Add("a")
		q.Add("b")
		assert.Equal(t, "a", next(q))
		q.Add("a")
		drained := drain(q)
		var ended []bool
		for _, item := range []string{"a", "b", "a"} {
			assert.False(t, impl == transcript.Ours && drained())
			q.Done(item)
			ended = append(ended, drained())
			_, _ = q.Get()
		}
		want := []bool{false, false, true}
		if impl == clientGo {
			want = []bool{true, true, true}
		}
		assert.Equal(t, want, ended)
	})
}

// A Done of client-go wakes one of two drains, and the other waits until ShutDown is called.
func TestDifference_EveryDrainEnds(t *testing.T) {
	onBoth(t, func(t *testing.T, impl string, q queue) {
		q.Add("a")
		assert.Equal(t, "a", next(q))
		first, second := drain(q), drain(q)
		assert.False(t, first() || second(), "the second drain does not end the first")
		q.Done("a")
		assert.True(t, first() || second())
		assert.Equal(t, impl == transcript.Ours, first() && second())
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
		go serve(q)
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
		assert.Equal(t, map[string]int{transcript.Ours: 1, clientGo: 2}[impl], q.Len())
	})
}

// The 1001st AddAfter of client-go blocks while its goroutine does not come to take it; ours has no
// channel to fill. Here the goroutine hangs in the Add of a queue of the owner's own.
func TestDifference_AddAfterNeverBlocks(t *testing.T) {
	var release chan struct{}
	config := func() workqueue.Config[string] {
		release = make(chan struct{})
		return workqueue.Config[string]{Queue: newOwnQueue(func(string) { <-release })}
	}
	onBothWith(t, config, func(t *testing.T, impl string, q queue) {
		q.AddAfter("0", time.Second)
		after(2 * time.Second) // 0 is due; its Add hangs
		var calls atomic.Int32
		go func() {
			for i := range 2000 {
				q.AddAfter(fmt.Sprint(i), time.Hour)
				calls.Add(1)
			}
		}()
		synctest.Wait()
		want := map[string]int{transcript.Ours: 2000, clientGo: 1000}[impl]
		assert.EqualValues(t, want, calls.Load())
		close(release)
		synctest.Wait()
	})
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
	var order *pickyOrder
	config := func() workqueue.Config[string] {
		order = &pickyOrder{Queue: workqueue.DefaultQueue[string]()}
		return workqueue.Config[string]{Order: order}
	}
	onBothWith(t, config, func(t *testing.T, impl string, q queue) {
		take := func() {
			assert.Equal(t, "a", next(q))
			q.Add("a")
			order.picky = true
		}
		q.Add("a")
		take()
		assert.PanicsWithValue(t, "no a", func() { q.Done("a") })
		order.picky = false
		q.Add("a")
		if impl == clientGo {
			assert.Zero(t, q.Len())
			assert.True(t, drain(q)())
			return
		}
		assert.Equal(t, 1, q.Len())
		take()
		drained := drain(q)
		assert.False(t, drained())
		assert.Panics(t, func() { q.Done("a") })
		assert.True(t, drained())
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
			limiter.When("99") // the others are gone, this one was never idle for 12 hours
			assert.Equal(t, 3, limiter.NumRequeues("99"), name)
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
