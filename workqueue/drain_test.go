// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/workqueue"
)

// Two keys wait for an hour, a third has failed: Finish works on them now. The retry of one that
// fails again is not waited for. It is what is left.
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
// that is free gets none of them. The retry of a is handed back, too.
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
		rest := q.SnapshotOf(10)
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

// ShutDown ends the wait, and a queue that has nothing to do has none.
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
	for range 50 {
		var q *workqueue.TypedRateLimitingQueue[string]
		var ended sync.WaitGroup
		shutDown := sync.OnceFunc(func() {
			ended.Go(q.ShutDown)
			for q.Keeps() {
				runtime.Gosched()
			}
		})
		q = ours(workqueue.Config[string]{Metrics: workqueue.Metrics{Adds: shutDown}})
		for i := range 3 {
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
	type end = func(q *workqueue.TypedRateLimitingQueue[string])
	for _, end := range []end{
		func(q *workqueue.TypedRateLimitingQueue[string]) { q.ShutDown() },
		func(q *workqueue.TypedRateLimitingQueue[string]) { q.ShutDownWithDrain() },
		func(q *workqueue.TypedRateLimitingQueue[string]) { _, _ = q.HandBack(context.Background()) },
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

// belows are the queues that can be drained. They make a config's Order and Queue.
var belows = []struct {
	name string
	make func(config workqueue.Config[string]) *workqueue.TypedRateLimitingQueue[string]
}{
	{"Typed", ours},
	{"client-go's drain", func(
		config workqueue.Config[string],
	) *workqueue.TypedRateLimitingQueue[string] {
		config.DrainProcessingOnly = true
		return ours(config)
	}},
	{"order", func(config workqueue.Config[string]) *workqueue.TypedRateLimitingQueue[string] {
		config.Order = ownOrder{workqueue.DefaultQueue[string]()}
		return ours(config)
	}},
	{"Fair", func(config workqueue.Config[string]) *workqueue.TypedRateLimitingQueue[string] {
		config.Queue = workqueue.NewFair(workqueue.FairConfig[string]{}, config)
		config.Metrics = workqueue.Metrics{}
		return ours(config)
	}},
}

// ownOrder is not known to a Typed.
type ownOrder struct{ workqueue.Queue[string] }

// drainModel is the model with the items that a drain takes or waits for.
type drainModel struct {
	*model
	handsBack bool
	taken     []string
	takenDue  map[string]time.Time
	deadline  time.Time
}

func (m *model) finish(deadline time.Time) *drainModel {
	items := slices.SortedFunc(keysOf(m.waitingSet()), func(a, b string) int {
		return m.waiting[a].Compare(m.waiting[b])
	})
	for _, item := range items {
		m.add(item)
	}
	m.shutDown()
	m.keeps = true
	return &drainModel{model: m, deadline: deadline}
}

func (m *model) handBack(deadline time.Time) *drainModel {
	d := &drainModel{model: m, deadline: deadline, handsBack: true, taken: m.queue,
		takenDue: map[string]time.Time{}}
	for item, due := range m.waiting {
		d.takenDue[item] = due
	}
	m.queue = nil
	m.shutDown()
	m.keeps = true
	return d
}

func (m *model) waitingSet() map[string]bool {
	set := map[string]bool{}
	for item := range m.waiting {
		set[item] = true
	}
	return set
}

func (d *drainModel) ends() bool {
	drained := len(d.processing) == 0 && len(d.queue) == 0
	return drained || !d.keeps || !time.Now().Before(d.deadline)
}

// check compares a result. again are the items that were added again before a HandBack.
func (d *drainModel) check(t *testing.T, c *drainCall, again []string) {
	t.Helper()
	due := map[string]time.Time{}
	for _, at := range []map[string]time.Time{d.takenDue, d.waiting} {
		for item, at := range at {
			if old, ok := due[item]; !ok || at.Before(old) {
				due[item] = at
			}
		}
	}
	var last time.Time
	for _, w := range c.left.Waiting {
		require.Equal(t, due[w.Item], w.Due, "the time of %s", w.Item)
		require.False(t, w.Due.Before(last), "in order")
		require.Equal(t, d.failures[w.Item], w.Failures)
		last = w.Due
	}
	require.Len(t, c.left.Waiting, len(due))
	require.ElementsMatch(t, slices.Collect(keysOf(d.processing)), c.left.Processing)
	ready := d.queue
	if d.handsBack {
		require.True(t, slices.Equal(d.taken, c.left.Ready[:len(d.taken)]), "in order")
		require.ElementsMatch(t, again, c.left.Ready[len(d.taken):])
		require.Equal(t, len(d.processing) == 0, c.err == nil)
		d.keeps = d.keeps && c.err != nil
		clear(d.waiting)
		return
	}
	require.ElementsMatch(t, ready, c.left.Ready)
	nothing := len(ready)+len(d.processing)+len(due) == 0
	require.Equal(t, nothing, c.err == nil)
	d.keeps = d.keeps && !nothing
}

// Random operations, also while a drain waits, do to each queue what they do to the model, and each
// drain returns when and what the model says: when workers have finished, at its deadline, or at a
// ShutDown. The depth is the number of dirty items, and no item is lost.
func TestModel_Drains(t *testing.T) {
	workqueue.SmallLimits(t)
	for _, below := range belows {
		for seed := range uint64(30) {
			synctest.Test(t, func(t *testing.T) {
				w := newDrainWorld(t, below.make, seed)
				for range 2 + w.random.IntN(150) {
					w.step()
					w.check()
				}
				for range 3 {
					w.drain(w.random.IntN(2) == 0)
				}
				w.q.ShutDown()
				w.m.shutDown()
				w.q.CheckLaws(t)
				synctest.Wait()
				require.Zero(t, goroutines())
			})
		}
	}
}

// drainWorld is a queue beside its model.
type drainWorld struct {
	t      *testing.T
	random *rand.Rand
	r      *recorder
	q      *workqueue.TypedRateLimitingQueue[string]
	m      *model
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

// step is one of the model's operations, a Reschedule or a CancelDelayed.
func (w *drainWorld) step() {
	w.t.Helper()
	key := fmt.Sprint(w.random.IntN(8))
	_, waits := w.m.waiting[key]
	switch w.random.IntN(12) {
	case 0:
		d := time.Duration(w.random.Int64N(int64(5*time.Second)) - int64(time.Second))
		require.Equal(w.t, waits, w.q.Reschedule(key, d))
		if waits {
			w.m.waiting[key] = time.Now().Add(max(0, d))
		}
		synctest.Wait()
		w.m.sleep()
	case 1:
		require.Equal(w.t, waits, w.q.CancelDelayed(key))
		delete(w.m.waiting, key)
	default:
		bits := w.random.Uint32()
		w.m.step(w.t, w.q, byte(bits), byte(bits>>8), uint16(bits>>16)&0x7fff)
	}
}

// check compares what waits, and the depth.
func (w *drainWorld) check() {
	w.t.Helper()
	for item := range 8 {
		due, waits := w.q.Due(fmt.Sprint(item))
		want, wantWaits := w.m.waiting[fmt.Sprint(item)]
		require.Equal(w.t, want, due)
		require.Equal(w.t, wantWaits, waits)
	}
	require.EqualValues(w.t, len(w.m.dirty), w.r.value("depth", "q"))
	w.q.CheckLaws(w.t)
}

// drain calls HandBack or Finish, and goes on until it has ended.
func (w *drainWorld) drain(handBack bool) {
	w.t.Helper()
	deadline := time.Now().Add(time.Duration(w.random.Int64N(int64(20 * time.Second))))
	ctx, cancel := context.WithDeadline(w.t.Context(), deadline)
	defer cancel()
	var again []string
	var d *drainModel
	var c *drainCall
	if handBack {
		for item := range w.m.dirty {
			if w.m.processing[item] {
				again = append(again, item)
			}
		}
		d = w.m.handBack(deadline)
		clear(w.m.dirty)
		c = startDrain(ctx, w.q.HandBack)
	} else if w.m.shuttingDown {
		w.m.keeps = true
		d = &drainModel{model: w.m, deadline: deadline}
		c = startDrain(ctx, w.q.Finish)
	} else {
		d = w.m.finish(deadline)
		c = startDrain(ctx, w.q.Finish)
	}
	for !d.ends() {
		require.False(w.t, c.ended())
		w.check()
		if w.random.IntN(40) == 0 {
			w.q.ShutDown()
			w.m.shutDown()
		} else {
			w.step()
		}
	}
	require.True(w.t, c.ended())
	d.check(w.t, c, again)
	w.check()
}

// What a Fair with groups, limits and priorities hands back is what its model contains, with the
// priorities. It then knows no item but those of workers.
func TestHandBack_FairModel(t *testing.T) {
	workqueue.SmallLimits(t)
	for seed := range uint64(60) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 7))
			w := newFairWorld(t, 4, map[string]int{"g1": 2}, map[string]int{"g1": 1, "g2": 2})
			q := workqueue.NewTypedDelayingQueue(workqueue.Config[string]{Queue: w.q})
			for range random.IntN(200) {
				switch op := random.IntN(10); {
				case op < 5:
					w.add(fmt.Sprintf("g%d/%d", random.IntN(4), random.IntN(12)), random.IntN(4)-2)
				case op < 8:
					w.get()
				case len(w.working) > 0:
					w.done(random.IntN(len(w.working)))
				}
			}
			want := map[string]int{}
			for _, l := range w.m.levels {
				for _, p := range l.parts {
					for _, item := range p.items {
						want[item] = l.priority
					}
				}
			}
			for item, priority := range w.m.again {
				want[item] = priority
			}
			handBack := startDrain(t.Context(), q.HandBack)
			synctest.Wait()
			w.q.CheckLaws(t)
			require.Zero(t, w.q.Len())
			for _, item := range w.working {
				q.Done(item)
			}
			require.True(t, handBack.ended())
			require.NoError(t, handBack.err)
			require.Len(t, handBack.left.Ready, len(want))
			for _, item := range handBack.left.Ready {
				require.Contains(t, want, item)
				require.Equal(t, want[item], handBack.left.Priorities[item], item)
			}
			w.q.CheckLaws(t)
			require.Zero(t, w.q.Known())
		})
	}
}

// Workers fail, Adds supersede waits and items are rescheduled at the moment of a Finish and a
// HandBack: every item was worked on with success, or is handed back.
func TestHandBack_LosesNothing(t *testing.T) {
	for _, below := range belows {
		for seed := range uint64(100) {
			synctest.Test(t, func(t *testing.T) {
				random := rand.New(rand.NewPCG(seed, 8))
				q := below.make(workqueue.Config[string]{AddSupersedesDelayed: seed%2 == 0})
				var mu sync.Mutex
				found := map[string]bool{}
				note := func(item string) {
					mu.Lock()
					defer mu.Unlock()
					found[item] = true
				}
				var workers, calls sync.WaitGroup
				for range 3 {
					workers.Go(func() {
						for item, shutdown := q.Get(); !shutdown; item, shutdown = q.Get() {
							time.Sleep(time.Microsecond)
							if q.NumRequeues(item) < 2 {
								q.AddRateLimited(item)
							} else {
								note(item)
							}
							q.Done(item)
						}
					})
				}
				items := map[string]bool{}
				for i := range 30 {
					item := fmt.Sprint(i)
					items[item] = true
					q.AddAfter(item, time.Duration(1+random.IntN(5))*time.Microsecond)
					start := time.Duration(random.IntN(6)) * time.Microsecond
					call := []func(){
						func() { q.Add(item) }, func() { q.Add(item) },
						func() { q.Reschedule(item, 0) }, func() { q.Reschedule(item, time.Hour) },
					}[random.IntN(4)]
					calls.Go(func() {
						time.Sleep(start)
						call()
					})
				}
				time.Sleep(time.Duration(random.IntN(6)) * time.Microsecond)
				ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
				for range random.IntN(3) {
					finish := startDrain(ctx, q.Finish)
					if random.IntN(2) == 0 {
						<-finish.done
					}
				}
				left, err := q.HandBack(t.Context())
				require.NoError(t, err)
				cancel()
				workers.Wait()
				calls.Wait()
				synctest.Wait()
				for _, item := range left.Ready {
					found[item] = true
				}
				for _, w := range left.Waiting {
					found[w.Item] = true
				}
				require.Equal(t, items, found)
				require.Zero(t, goroutines())
				q.CheckLaws(t)
			})
		}
	}
}
