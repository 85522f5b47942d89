// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	testingclock "k8s.io/utils/clock/testing"

	"example.com/informerstack/workqueue"
)

type big struct{ _ [1 << 10]byte }

// collected reports whether the garbage collector took n tracked objects.
func collected(n int, taken *atomic.Int32) bool {
	for range 50 {
		runtime.GC()
		if int(taken.Load()) == n {
			return true
		}
		time.Sleep(time.Millisecond)
	}
	return false
}

func newBig(taken *atomic.Int32) *big {
	b := new(big)
	runtime.AddCleanup(b, func(*atomic.Int32) { taken.Add(1) }, taken)
	return b
}

// kubernetes/kubernetes#104991, #105031: what was worked on can be collected while the queue lives.
func TestRegress104991_NothingDoneStaysAlive(t *testing.T) {
	const n = 100
	type delaying = workqueue.TypedDelayingQueue[*big]
	for name, add := range map[string]func(*delaying, *big){
		"Add":      func(q *delaying, b *big) { q.Add(b) },
		"AddAfter": func(q *delaying, b *big) { q.AddAfter(b, time.Nanosecond) },
		"CancelDelayed": func(q *delaying, b *big) {
			q.AddAfter(b, time.Hour)
			q.CancelDelayed(b)
			q.Add(b)
		},
	} {
		t.Run(name, func(t *testing.T) {
			q := workqueue.NewTypedDelayingQueue(workqueue.Config[*big]{})
			defer q.ShutDown()
			var taken atomic.Int32
			for range n {
				add(q, newBig(&taken))
			}
			for range n {
				serve(q)
			}
			assert.True(t, collected(n, &taken), "%d of %d", taken.Load(), n)
			q.CheckLaws(t)
		})
	}
}

// kubernetes/kubernetes#104991 again, for an order built on DefaultQueue.
func TestRegress104991_DefaultQueue(t *testing.T) {
	order := workqueue.DefaultQueue[*big]()
	var taken atomic.Int32
	order.Push(newBig(&taken))
	order.Push(newBig(&taken))
	order.Pop()
	assert.True(t, collected(1, &taken))
	assert.Equal(t, 1, order.Len())
}

// A burst does not keep its memory: the slice shrinks although the queue never becomes empty, as in
// client-go, and the map when it does.
func TestTyped_ShrinksAfterABurst(t *testing.T) {
	q := workqueue.NewTyped(workqueue.Config[int]{})
	const n = 100_000
	for i := range n {
		q.Add(i)
	}
	q.CheckLaws(t)
	assert.Equal(t, n, q.MostDirty())
	assert.GreaterOrEqual(t, q.Slots(), n)
	for range n - 10 {
		serve(q)
	}
	for range n {
		q.Add(serve(q))
	}
	q.CheckLaws(t)
	assert.Equal(t, 10, q.Len())
	assert.LessOrEqual(t, q.Slots(), 8192)
	for range 10 {
		serve(q)
	}
	q.CheckLaws(t)
	assert.LessOrEqual(t, q.MostDirty(), 4096)
	assert.LessOrEqual(t, q.Slots(), 4096)
}

// The metrics give back theirs: they have a map of their own.
func TestTyped_MetricsShrinkAfterABurst(t *testing.T) {
	live := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	q := workqueue.NewTyped(workqueue.Config[int]{Metrics: workqueue.Metrics{Adds: func() {}}})
	before := live()
	const n = 200_000
	for i := range n {
		q.Add(i)
	}
	assert.Greater(t, live()-before, int64(n*24))
	for range n {
		serve(q)
	}
	assert.Less(t, live()-before, int64(1<<20))
	runtime.KeepAlive(q)
}

// The same for items that wait, when the last one is due and not before.
func TestDelaying_ShrinksAfterABurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 100_000
		q := workqueue.NewTypedDelayingQueue(workqueue.Config[int]{})
		defer q.ShutDown()
		for i := range n {
			q.AddAfter(i, time.Duration(1+i%2)*time.Second)
		}
		for half := range 2 {
			assert.GreaterOrEqual(t, q.Slots(), n)
			time.Sleep(time.Second)
			synctest.Wait()
			assert.Equal(t, (half+1)*n/2, q.Len())
			q.CheckLaws(t)
		}
		assert.Zero(t, q.Slots())
	})
}

// kubernetes/kubernetes#83945: AddAfter leaves one timer behind, not one for each call.
func TestRegress83945_OneTimer(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	q := workqueue.NewTypedDelayingQueue(workqueue.Config[int]{Clock: clock})
	defer q.ShutDown()
	for i := range 1000 {
		q.AddAfter(i, 10*time.Hour-time.Duration(i)*time.Second) // each is due before all others
		require.LessOrEqual(t, clock.Waiters(), 1)
	}
	q.CheckLaws(t)
	q.ShutDown()
	assert.Zero(t, clock.Waiters())
}

// A delaying queue shuts the queue below down once, however often it is shut down itself.
func TestDelaying_ShutsTheOwnersQueueDownOnce(t *testing.T) {
	var below *ownQueue
	config := func() workqueue.Config[string] {
		below = newOwnQueue(nil)
		return workqueue.Config[string]{Queue: below}
	}
	onBothWith(t, config, func(t *testing.T, impl string, q queue) {
		q.ShutDownWithDrain()
		assert.Equal(t, 0, below.shutDowns)
		for range 3 {
			q.ShutDown()
		}
		q.ShutDownWithDrain()
		q.ShutDown()
		assert.Equal(t, 1, below.shutDowns)
		assert.Equal(t, 2, below.drains)
	})
}

// kubernetes/kubernetes#119554: ShutDown and ShutDownWithDrain at the same moment, while a worker
// is busy: both return.
func TestRegress119554_ShutDownReleasesDrain(t *testing.T) {
	onBoth(t, func(t *testing.T, impl string, q queue) {
		q.Add("a")
		require.Equal(t, "a", next(q))
		var drains sync.WaitGroup
		for range 3 {
			drains.Go(q.ShutDownWithDrain)
		}
		after(time.Second)
		q.ShutDown()
		drains.Wait()
	})
}

// kubernetes/kubernetes#120799: three Adds are one; three Adds while a worker has the item are one
// more.
func TestRegress120799_AddsCollapse(t *testing.T) {
	onBoth(t, func(t *testing.T, impl string, q queue) {
		for range 3 {
			q.Add("a")
		}
		assert.Equal(t, "a", nextAll(q))
		for range 3 {
			q.Add("a")
		}
		assert.Equal(t, "", nextAll(q))
		q.Done("a")
		assert.Equal(t, "a", nextAll(q))
		q.Done("a")
		assert.Equal(t, "", nextAll(q))
	})
}

// kubernetes/kubernetes#28179: of two times the earlier counts, and the later one does not put it
// off.
func TestRegress28179_EarliestWins(t *testing.T) {
	for _, delays := range [][]time.Duration{{5, 10}, {10, 5}, {5, 5}} {
		onBoth(t, func(t *testing.T, impl string, q queue) {
			for _, d := range delays {
				q.AddAfter("a", d*time.Second)
			}
			after(5*time.Second - 1)
			assert.Equal(t, "", nextAll(q))
			after(1)
			assert.Equal(t, "a", nextAll(q))
			q.Done("a")
			after(time.Hour)
			assert.Equal(t, "", nextAll(q))
		})
	}
}

// kubernetes/kubernetes#126027: with AddSupersedesDelayed, Add and AddAfter(0) cancel the wait.
// Without it they do not, as in client-go.
func TestRegress126027_AddSupersedesDelayed(t *testing.T) {
	for _, supersedes := range []bool{false, true} {
		for name, add := range map[string]func(queue){
			"Add":         func(q queue) { q.Add("a") },
			"AddAfter(0)": func(q queue) { q.AddAfter("a", 0) },
		} {
			t.Run(fmt.Sprintf("%s/supersedes=%v", name, supersedes), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					q := ours(workqueue.Config[string]{AddSupersedesDelayed: supersedes})
					defer q.ShutDown()
					q.AddAfter("a", 300*time.Millisecond)
					q.AddAfter("b", 200*time.Millisecond)
					add(q)
					q.CheckLaws(t)
					assert.Equal(t, "a", nextAll(q))
					q.Done("a")
					after(time.Hour)
					if supersedes {
						assert.Equal(t, "b", nextAll(q))
					} else {
						assert.Equal(t, "b a", nextAll(q))
					}
				})
			})
		}
	}
}

// kubernetes/kubernetes#104655: a thousand failures do not make the delay negative.
func TestRegress104655_NoOverflow(t *testing.T) {
	for _, base := range []time.Duration{1, 3, time.Millisecond, time.Hour, 1<<62 - 1, 1<<63 - 1} {
		for _, longest := range []time.Duration{time.Millisecond, time.Hour, 1<<63 - 1} {
			limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](base, longest)
			last := time.Duration(0)
			for range 1000 {
				d := limiter.When("a")
				require.GreaterOrEqual(t, d, last)
				require.LessOrEqual(t, d, longest)
				last = d
			}
			assert.Equal(t, longest, last)
			assert.Equal(t, 1000, limiter.NumRequeues("a"))
		}
	}
}

// kubernetes/kubernetes#135072, #94813: ShutDown waits for the goroutine of the metrics,
// which runs only with metrics.
func TestRegress135072_NothingRunsAfterShutDown(t *testing.T) {
	for name, shutDown := range map[string]func(queue){
		"ShutDown":          func(q queue) { q.ShutDown() },
		"ShutDownWithDrain": func(q queue) { q.ShutDownWithDrain() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for i := range 50 {
					q := ours(workqueue.Config[string]{Metrics: newRecorder().metrics("q")})
					synctest.Wait()
					require.Equal(t, 2, goroutines(), "Unfinished and Waiting")
					go func() {
						for _, shutdown := q.Get(); !shutdown; _, shutdown = q.Get() {
							q.Done("a")
						}
					}()
					q.AddAfter("b", time.Hour)
					q.AddAfter("a", time.Duration(i)*time.Microsecond)
					time.Sleep(25 * time.Microsecond)
					shutDown(q)
					synctest.Wait() // the worker's end
					require.Zero(t, goroutines())
				}
			})
		})
	}
}

// kubernetes/kubernetes#94813: a queue without metrics runs nothing, waiting items or not.
func TestRegress94813_NoGoroutineWithoutMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := ours(workqueue.Config[string]{})
		q.AddAfter("a", time.Hour)
		q.AddAfter("b", time.Second)
		assert.Zero(t, goroutines())
		after(time.Minute)
		assert.Zero(t, goroutines())
		assert.Equal(t, "b", next(q))
	}) // it was never shut down, and the bubble ends nevertheless
}

// goroutines counts those that are in the package's code.
func goroutines() int {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	count := 0
	for _, stack := range bytes.Split(stacks, []byte("\n\n")) {
		if bytes.Contains(stack, []byte("informerstack/workqueue.")) {
			count++
		}
	}
	return count
}
