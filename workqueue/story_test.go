// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/workqueue"
)

// Items are worked on in the order in which they came, and leave when they are done.
func TestStory_FirstInFirstOut(t *testing.T) {
	onBoth(t, func(t *testing.T, impl string, q queue) {
		q.Add("1")
		q.Add("2")
		q.Add("3")
		assert.Equal(t, "1", next(q))
		q.Done("1")
		assert.Equal(t, "2", next(q))
		q.Done("2")
		assert.Equal(t, "3", next(q))
		q.Done("3")
		assert.Equal(t, "nothing", next(q))
	})
}

// 1 is added while a worker has it: no second worker gets it, and it is queued once when the first
// is done.
func TestStory_AddDuringProcessingWaitsForDone(t *testing.T) {
	onBoth(t, func(t *testing.T, impl string, q queue) {
		q.Add("1")
		q.Add("2")
		q.Add("3")
		assert.Equal(t, "1", next(q))
		for range 5 {
			q.Add("1")
		}
		assert.Equal(t, 2, q.Len())
		assert.Equal(t, "2 3", nextAll(q), "a second worker gets the others")
		q.Done("1")
		assert.Equal(t, "1", nextAll(q))
	})
}

// Get takes an item out of the line, but only Done gives it back: a worker that forgets Done has
// lost the item for ever.
func TestStory_WithoutDoneAnItemNeverReturns(t *testing.T) {
	onBoth(t, func(t *testing.T, impl string, q queue) {
		q.Add("a")
		assert.Equal(t, "a", next(q))
		q.AddRateLimited("a") // "it failed", and no Done
		after(time.Hour)
		q.Add("a")
		assert.Equal(t, "nothing", next(q))
	})
}

// A worker that forgets Forget: the item succeeds, and its next failure, a day later, waits as long
// as if it had failed all the time.
func TestStory_WithoutForgetTheDelayKeepsDoubling(t *testing.T) {
	for _, forget := range []bool{false, true} {
		t.Run(fmt.Sprintf("forget=%v", forget), func(t *testing.T) {
			onBoth(t, func(t *testing.T, impl string, q queue) {
				var delays []time.Duration
				for range 4 { // times it fails, is retried and succeeds
					q.Add("a")
					require.Equal(t, "a", next(q))
					start := time.Now()
					q.AddRateLimited("a")
					q.Done("a")
					for q.Len() == 0 {
						after(time.Second)
					}
					delays = append(delays, time.Since(start))
					require.Equal(t, "a", next(q))
					if forget {
						q.Forget("a")
					}
					q.Done("a")
				}
				want := []time.Duration{1, 2, 4, 8}
				if forget {
					want = []time.Duration{1, 1, 1, 1}
				}
				for i := range want {
					want[i] *= time.Second
				}
				assert.Equal(t, want, delays)
			})
		})
	}
}

// Forget is not Done: the limiter forgets, the item stays with the worker.
func TestStory_ForgetIsNoDone(t *testing.T) {
	onBoth(t, func(t *testing.T, impl string, q queue) {
		q.Add("a")
		assert.Equal(t, "a", next(q))
		q.Forget("a")
		q.Add("a")
		assert.Equal(t, "nothing", next(q))
		q.Done("a")
		assert.Equal(t, "a", next(q))
	})
}

// Neither Done nor Forget: the item is gone although each failure asks for it again.
func TestStory_NeitherDoneNorForget(t *testing.T) {
	onBoth(t, func(t *testing.T, impl string, q queue) {
		q.Add("a")
		assert.Equal(t, "a", next(q))
		for range 3 {
			q.AddRateLimited("a")
			after(time.Minute)
		}
		assert.Equal(t, "nothing", next(q))
		assert.Equal(t, 3, q.NumRequeues("a"))
		q.Done("a")
		assert.Equal(t, "a", next(q), "one Done makes up for it")
	})
}

// Items are compared with ==. Two pointers to equal keys are two items, the keys themselves are
// one.
func TestStory_ItemsAreValues(t *testing.T) {
	log := narrate.New(t)
	type key struct{ namespace, name string }
	values := workqueue.NewTyped(workqueue.Config[key]{})
	values.Add(key{"ns", "a"})
	values.Add(key{"ns", "a"})
	log.Event("workqueue", "two Adds of key{ns, a}: %d item", values.Len())
	assert.Equal(t, 1, values.Len())

	pointers := workqueue.NewTyped(workqueue.Config[*key]{})
	pointers.Add(&key{"ns", "a"})
	pointers.Add(&key{"ns", "a"})
	log.Event("workqueue", "two Adds of &key{ns, a}: %d items", pointers.Len())
	assert.Equal(t, 2, pointers.Len())
}

// Many workers, many adders: no key is ever with two workers, and what was added last is worked on
// after it was added.
func TestStory_OneKeyOneWorker(t *testing.T) {
	onBoth(t, func(t *testing.T, impl string, q queue) {
		const keys, adders, workers, adds = 5, 8, 8, 200
		var mu sync.Mutex
		added, seen, with := map[string]int{}, map[string]int{}, map[string]int{}
		var working, adding sync.WaitGroup
		for range workers {
			working.Go(func() {
				for {
					key, shutdown := q.Get()
					if shutdown {
						return
					}
					mu.Lock()
					with[key]++
					assert.Equal(t, 1, with[key], "workers that have %s", key)
					seen[key] = added[key]
					mu.Unlock()
					time.Sleep(time.Millisecond)
					mu.Lock()
					with[key]--
					mu.Unlock()
					q.Done(key)
				}
			})
		}
		for a := range adders {
			adding.Go(func() {
				for i := range adds {
					key := fmt.Sprint((a + i) % keys)
					mu.Lock()
					added[key]++
					mu.Unlock()
					q.Add(key)
					time.Sleep(time.Duration(i%3) * time.Microsecond)
				}
			})
		}
		adding.Wait()
		q.ShutDown()
		working.Wait()
		assert.Equal(t, added, seen, "the last Add of each key was followed by work")
	})
}

// Every sleeping worker is woken when there is work for all of them, although one is woken at a
// time.
func TestStory_AllWorkersWake(t *testing.T) {
	onBoth(t, func(t *testing.T, impl string, q queue) {
		release := make(chan struct{})
		defer close(release)
		for range 10 {
			go func() {
				if _, shutdown := q.Get(); !shutdown {
					<-release // busy, and taking no other item
				}
			}()
		}
		synctest.Wait()
		for i := range 10 {
			q.Add(fmt.Sprint(i))
		}
		synctest.Wait()
		assert.Equal(t, 0, q.Len())
	})
}

// A worker that waits with a context ends with it; the others, and the items, are unharmed.
func TestStory_ContextEndsOneWorker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := narrate.New(t)
		q := workqueue.NewTyped(workqueue.Config[string]{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan bool, 1)
		go func() {
			_, shutdown := q.GetWithContext(ctx)
			log.Event("worker", "first worker ends")
			ended <- shutdown
		}()
		got := make(chan string, 1)
		go func() {
			item, _ := q.GetWithContext(t.Context())
			log.Event("worker", "second worker gets %s", item)
			got <- item
		}()
		synctest.Wait()
		log.Event("worker", "two workers wait; cancel the context of the first")
		cancel()
		assert.True(t, <-ended)
		log.Event("handler", "Add a")
		q.Add("a")
		assert.Equal(t, "a", <-got)
		assert.False(t, q.ShuttingDown())
		q.CheckLaws(t)
	})
}

// ShutDown stops adders, not workers: they finish what is queued.
func TestStory_ShutDownServesWhatIsQueued(t *testing.T) {
	onBoth(t, func(t *testing.T, impl string, q queue) {
		q.Add("a")
		q.Add("b")
		q.ShutDown()
		q.Add("c")
		assert.True(t, q.ShuttingDown())
		assert.Equal(t, "a", next(q))
		assert.Equal(t, "b", next(q))
		assert.Equal(t, "shutdown", next(q))
	})
}

// ShutDownWithDrain returns when everything is done: what workers have, what they will have again,
// what is queued.
func TestStory_DrainWaitsForEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := narrateQueue(narrate.New(t), impls[0].make())
		var worked sync.Map
		for range 3 {
			go func() {
				for {
					item, shutdown := q.Get()
					if shutdown {
						return
					}
					time.Sleep(time.Second)
					worked.Store(item, true)
					q.Done(item)
				}
			}()
		}
		for i := range 10 {
			q.Add(fmt.Sprint(i))
		}
		q.ShutDownWithDrain()
		for i := range 10 {
			_, ok := worked.Load(fmt.Sprint(i))
			assert.True(t, ok, "item %d", i)
		}
		checkLaws(t, q)
	})
}

// A failing item is retried at 1s, 2s, 4s; then it succeeds and starts over.
func TestStory_RetriesBackOff(t *testing.T) {
	onBoth(t, func(t *testing.T, impl string, q queue) {
		start := time.Now()
		var at []time.Duration
		q.Add("a")
		for try := range 4 {
			for q.Len() == 0 {
				after(time.Second)
			}
			require.Equal(t, "a", next(q))
			at = append(at, time.Since(start))
			if try < 3 {
				q.AddRateLimited("a")
			} else {
				q.Forget("a")
			}
			q.Done("a")
		}
		assert.Equal(t, []time.Duration{0, time.Second, 3 * time.Second, 7 * time.Second}, at)
		assert.Zero(t, q.NumRequeues("a"))
	})
}

// A snapshot shows where each item is, for a debug page.
func TestStory_SnapshotShowsWhereItemsAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := ours(workqueue.Config[string]{})
		defer q.ShutDown()
		for _, item := range []string{"a", "b", "c", "d"} {
			q.Add(item)
		}
		q.Get()
		q.Get()
		q.Add("b")
		q.AddAfter("f", 2*time.Hour)
		q.AddAfter("e", time.Hour)
		q.AddRateLimited("a")
		show(narrate.New(t), q.Snapshot())
		assert.Equal(t, workqueue.Snapshot[string]{
			Ready:      []string{"c", "d"},
			Processing: []string{"a", "b"},
			Again:      []string{"b"},
			Waiting: []workqueue.Waiting[string]{
				{Item: "a", Due: time.Now().Add(time.Second), Failures: 1},
				{Item: "e", Due: time.Now().Add(time.Hour)},
				{Item: "f", Due: time.Now().Add(2 * time.Hour)},
			},
			Taken:   2,
			Limited: 1,
		}, q.Snapshot())
	})
}

func show(log *narrate.Log, s workqueue.Snapshot[string]) {
	log.Event("workqueue", "ready:      %v", s.Ready)
	log.Event("workqueue", "processing: %v, added again: %v", s.Processing, s.Again)
	for _, w := range s.Waiting {
		log.Event("workqueue", "waiting:    %s for %v, failures %d", w.Item, time.Until(w.Due),
			w.Failures)
	}
}
