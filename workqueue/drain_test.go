// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/workqueue"
)

// Two keys wait for hours, a third has failed: Finish adds them now. It does not wait for the retry
// of one that fails again: this item is left.
func TestStory_FinishDoesNotWaitForDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := ours(workqueue.Config[string]{})
		q.AddAfter("later", 2*time.Hour)
		q.AddAfter("sooner", time.Hour)
		q.AddRateLimited("failed")
		finish := startDrain(t.Context(), q.Finish)
		assert.Equal(t, "failed sooner later", nextAll(q))
		q.AddRateLimited("failed")
		q.Add("new")
		for _, item := range []string{"failed", "sooner", "later"} {
			assert.False(t, finish.ended())
			q.Done(item)
		}
		require.True(t, finish.ended())
		assert.EqualError(t, finish.err,
			"finish queue: 0 ready, 0 processing and 1 waiting items are left")
		due := time.Now().Add(2 * time.Second)
		assert.Equal(t, []workqueue.Waiting[string]{{Item: "failed", Due: due, Failures: 2}},
			finish.left.Waiting)
		after(time.Hour)
		assert.Equal(t, "shutdown", next(q), "no timer adds it")
		q.ShutDown()
		assert.Empty(t, q.Snapshot().Waiting)
		assert.Zero(t, goroutines())
	})
}

// A worker has a, which changes. b is queued, c waits. HandBack returns all three, and a worker
// that is free gets no item. The retry of a is handed back, too.
func TestStory_HandBackLeavesNothingToWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRecorder()
		q := ours(workqueue.Config[string]{Metrics: r.metrics("q")})
		q.Add("a")
		assert.Equal(t, "a", next(q))
		q.Add("b")
		q.Add("a")
		q.AddAfter("c", time.Hour)
		due := time.Now().Add(time.Hour)
		handBack := startDrain(t.Context(), q.HandBack)
		assert.False(t, handBack.ended())
		assert.Zero(t, r.value("depth", "q"))
		assert.Equal(t, "shutdown", next(q))
		after(time.Minute)
		q.AddRateLimited("a")
		q.Done("a")
		require.True(t, handBack.ended())
		assert.NoError(t, handBack.err)
		assert.Equal(t, []string{"b", "a"}, handBack.left.Ready)
		assert.Equal(t, []workqueue.Waiting[string]{
			{Item: "a", Due: time.Now().Add(time.Second), Failures: 1}, {Item: "c", Due: due},
		}, handBack.left.Waiting)
		assert.EqualValues(t, 1, r.value("released", "q"))
		q.AddAfter("late", time.Minute)
		rest := q.SnapshotOf(0, 10)
		assert.Zero(t, rest.Total)
		assert.Zero(t, goroutines())
	})
}

// The deadline of Finish ends: HandBack takes what workers did not get, and the retries since.
func TestStory_FinishFailsThenHandBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := ours(workqueue.Config[string]{})
		q.Add("a")
		q.AddAfter("b", time.Hour)
		assert.Equal(t, "a", next(q))
		soon, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		finish := startDrain(soon, q.Finish)
		after(time.Minute)
		require.True(t, finish.ended())
		assert.ErrorIs(t, finish.err, context.DeadlineExceeded)
		assert.EqualError(t, finish.err, "finish queue: 1 ready, 1 processing and 0 waiting items "+
			"are left: context deadline exceeded")
		assert.Equal(t, []string{"b"}, finish.left.Ready)

		q.AddRateLimited("a") // it fails
		for _, ctx := range []context.Context{soon, t.Context()} {
			handBack := startDrain(ctx, q.HandBack)
			if ctx == soon {
				require.True(t, handBack.ended())
				assert.ErrorIs(t, handBack.err, context.DeadlineExceeded)
				assert.Equal(t, []string{"b"}, handBack.left.Ready)
				assert.Equal(t, "a", handBack.left.Waiting[0].Item)
				assert.Equal(t, []string{"a"}, handBack.left.Processing)
				continue
			}
			assert.False(t, handBack.ended())
			q.AddAfter("a", time.Hour)
			q.Done("a")
			require.True(t, handBack.ended())
			assert.NoError(t, handBack.err)
			assert.Empty(t, handBack.left.Ready)
			assert.Equal(t, "a", handBack.left.Waiting[0].Item)
		}
		q.CheckLaws(t)
	})
}

// Finish adds items with the priorities of their waits, and HandBack returns these.
func TestDrains_Priorities(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.NewTypedDelayingQueue(workqueue.Config[string]{
			Queue: workqueue.NewFair(workqueue.FairConfig[string]{}, workqueue.Config[string]{})})
		q.AddAfter("a", time.Minute)
		q.AddAfterWithPriority("b", time.Hour, 7)
		finish := startDrain(t.Context(), q.Finish)
		synctest.Wait()
		item, priority, _ := q.GetWithPriority()
		assert.Equal(t, "b", item)
		assert.Equal(t, 7, priority)
		q.AddAfterWithPriority("b", time.Hour, 8)
		q.Done("b")
		left, err := q.HandBack(t.Context())
		assert.NoError(t, err)
		assert.Equal(t, []string{"a"}, left.Ready)
		assert.Equal(t, map[string]int{"b": 8}, left.Priorities)
		assert.Equal(t, 8, left.Waiting[0].Priority)
		require.True(t, finish.ended())
		assert.NoError(t, finish.err)
	})
}

// ShutDown ends the wait. A queue that has nothing to do does not wait.
func TestDrains_ShutDown(t *testing.T) {
	for _, below := range belows {
		synctest.Test(t, func(t *testing.T) {
			q := below.make(workqueue.Config[string]{})
			q.Add("a")
			q.Get()
			q.AddAfter("b", time.Hour)
			finish := startDrain(t.Context(), q.Finish)
			assert.False(t, finish.ended())
			handBack := startDrain(t.Context(), q.HandBack)
			assert.False(t, handBack.ended())
			assert.False(t, finish.ended())
			q.AddRateLimited("a")
			q.ShutDown()
			require.True(t, finish.ended() && handBack.ended(), below.name)
			assert.EqualError(t, finish.err, "finish queue: 0 ready, 1 processing and 0 waiting "+
				"items are left: ShutDown was called")
			assert.ErrorContains(t, handBack.err, "ShutDown was called")
			assert.Equal(t, []string{"b"}, handBack.left.Ready, "Finish has added it")
			assert.Empty(t, handBack.left.Waiting, "ShutDown drops a retry")
			q.AddRateLimited("a")
			assert.Empty(t, q.Snapshot().Waiting, below.name)
			q.Done("a")
			for _, drain := range []drainFunc{q.Finish, q.HandBack} {
				again := startDrain(t.Context(), drain)
				require.True(t, again.ended())
				assert.NoError(t, again.err)
				q.AddAfter("late", time.Hour)
				assert.Empty(t, q.Snapshot().Waiting, below.name)
			}
			q.CheckLaws(t)
			assert.Zero(t, goroutines())
		})
	}
}

// A ShutDown while Finish adds the waiting items ends it.
func TestFinish_ShutDownMeanwhile(t *testing.T) {
	for range 5 {
		var q *workqueue.TypedRateLimitingQueue[string]
		var ended sync.WaitGroup
		shutDown := sync.OnceFunc(func() {
			ended.Go(q.ShutDown)
			for q.Keeps() {
				runtime.Gosched()
			}
		})
		q = ours(workqueue.Config[string]{Metrics: workqueue.Metrics{Adds: shutDown}})
		for i := range 20000 { // ShutDown gets the lock meanwhile
			q.AddAfter(fmt.Sprint(i), time.Hour)
		}
		_, err := q.Finish(t.Context()) // no worker will come
		assert.ErrorContains(t, err, "ShutDown was called")
		ended.Wait()
	}
}

// A queue of the owner's own can be drained with ShutDownWithDrain alone.
func TestDrains_OwnQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := ours(workqueue.Config[string]{Queue: newOwnQueue(nil)})
		q.AddAfter("a", time.Minute)
		for verb, drain := range map[string]drainFunc{"finish": q.Finish, "hand back": q.HandBack} {
			_, err := drain(t.Context())
			assert.EqualError(t, err, verb+" queue: Config.Queue is a *workqueue_test.ownQueue, "+
				"and not a Typed or a Fair")
		}
		after(time.Minute)
		assert.Equal(t, "a", next(q), "nothing has changed")
		q.ShutDown()
	})
}

// Due, and a wait that becomes shorter, longer, and ends.
func TestReschedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := workqueue.NewTypedDelayingQueue(workqueue.Config[string]{
			Queue: workqueue.NewFair(workqueue.FairConfig[string]{}, workqueue.Config[string]{})})
		defer q.ShutDown()
		assert.False(t, q.Reschedule("a", time.Minute))
		_, waits := q.Due("a")
		assert.False(t, waits)

		start := time.Now()
		q.AddAfterWithPriority("a", time.Hour, 7)
		q.AddAfter("b", 90*time.Minute)
		isDue := func(want time.Duration) {
			t.Helper()
			due, waits := q.Due("a")
			assert.True(t, waits)
			assert.Equal(t, want, due.Sub(start))
			q.CheckLaws(t)
		}
		isDue(time.Hour)
		assert.True(t, q.Reschedule("a", time.Minute))
		isDue(time.Minute)
		assert.True(t, q.Reschedule("a", 2*time.Hour))
		isDue(2 * time.Hour)
		after(2*time.Hour - 1)
		assert.Equal(t, 1, q.Len(), "b alone")
		isDue(2 * time.Hour)
		assert.True(t, q.Reschedule("a", -time.Hour))
		synctest.Wait()
		item, priority, _ := q.GetWithPriority()
		assert.Equal(t, "a", item)
		assert.Equal(t, 7, priority)
		assert.False(t, q.Reschedule("a", time.Minute))
		q.CheckLaws(t)
	})
}

// The metric counts the items that wait, and has the longest of the times that are left. It ends
// with the waits.
func TestMetrics_Waiting(t *testing.T) {
	type limiting = workqueue.TypedRateLimitingQueue[string]
	for _, end := range []func(q *limiting){
		func(q *limiting) { q.ShutDown() },
		func(q *limiting) { q.ShutDownWithDrain() },
		func(q *limiting) { _, _ = q.HandBack(context.Background()) },
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRecorder()
			q := ours(workqueue.Config[string]{
				Metrics: workqueue.Metrics{Waiting: r.metrics("q").Waiting},
				Queue:   workqueue.NewTyped(workqueue.Config[string]{})})
			random, latest := rand.New(rand.NewPCG(1, 5)), time.Duration(0)
			for i := range 100 {
				delay := time.Duration(1 + random.Int64N(int64(time.Hour)))
				latest = max(latest, delay)
				q.AddAfter(fmt.Sprint(i), delay+time.Minute)
				if i%10 == 0 {
					after(500 * time.Millisecond)
					latest = max(0, latest-500*time.Millisecond)
					assert.EqualValues(t, i+1, r.value("waiting", "q"))
					assert.Equal(t, (latest + time.Minute).Seconds(), r.value("longest wait", "q"))
				}
			}
			assert.Equal(t, 1, goroutines())
			end(q)
			assert.Zero(t, r.value("waiting", "q"))
			assert.Zero(t, r.value("longest wait", "q"))
			assert.Zero(t, goroutines())
		})
	}
}

type (
	drainFunc = func(context.Context) (workqueue.Snapshot[string], error)
	// drainCall is a call of Finish or HandBack. left and err are set once it has ended.
	drainCall struct {
		left workqueue.Snapshot[string]
		err  error
		done chan struct{}
	}
)

func startDrain(ctx context.Context, drain drainFunc) *drainCall {
	c := &drainCall{done: make(chan struct{})}
	go func() {
		c.left, c.err = drain(ctx)
		close(c.done)
	}()
	return c
}

func (c *drainCall) ended() bool {
	synctest.Wait()
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

func newDrainWorld(
	t *testing.T,
	make func(workqueue.Config[string]) *workqueue.TypedRateLimitingQueue[string], seed uint64,
) *drainWorld {
	w := &drainWorld{t: t, random: rand.New(rand.NewPCG(seed, 6)), r: newRecorder(), m: newModel()}
	w.m.supersedes = seed%2 == 0
	w.q = make(workqueue.Config[string]{
		AddSupersedesDelayed: w.m.supersedes,
		Metrics:              workqueue.Metrics{Depth: w.r.metrics("q").Depth},
	})
	return w
}
