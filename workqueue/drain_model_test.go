// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/workqueue"
)

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

// drain calls HandBack or Finish, and continues with operations until it has ended.
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

// A Fair with groups, limits and priorities hands back the items of its model, with their
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
				maps.Copy(found, setOf(left))
				require.Equal(t, items, found)
				require.Zero(t, goroutines())
				q.CheckLaws(t)
			})
		}
	}
}

// An Add that has ended an item's wait adds the item before a HandBack refuses it.
func TestHandBack_WaitsForAnAddThatSupersedes(t *testing.T) {
	for range 300 {
		q := ours(workqueue.Config[string]{AddSupersedesDelayed: true})
		const items = 100
		for i := range items {
			q.AddAfter(fmt.Sprint(i), time.Hour)
		}
		var adder sync.WaitGroup
		adder.Go(func() {
			for i := range items {
				q.Add(fmt.Sprint(i))
			}
		})
		for q.Len() < items/10 {
			runtime.Gosched()
		}
		left, err := q.HandBack(t.Context())
		adder.Wait()
		require.NoError(t, err)
		require.Len(t, setOf(left), items)
	}
}

// So does a timer that has fired.
func TestDrains_WaitForDueItems(t *testing.T) {
	for seed := range 1000 {
		synctest.Test(t, func(t *testing.T) {
			q := ours(workqueue.Config[string]{})
			const items = 100
			for i := range items {
				q.AddAfter(fmt.Sprint(i), time.Second)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			time.Sleep(time.Second)
			for q.Len() < items/10 {
				runtime.Gosched()
			}
			drain := []drainFunc{q.Finish, q.HandBack}[seed%2]
			left, _ := drain(ctx)
			require.Len(t, setOf(left), items)
		})
	}
}

// setOf returns the items that no worker has.
func setOf(left workqueue.Snapshot[string]) map[string]bool {
	set := map[string]bool{}
	for _, item := range left.Ready {
		set[item] = true
	}
	for _, w := range left.Waiting {
		set[w.Item] = true
	}
	return set
}
