// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/workqueue"
)

// onlySnapshot is a queue that is not Partial.
type onlySnapshot struct {
	queue *workqueue.TypedRateLimitingQueue[string]
}

func (q onlySnapshot) Snapshot() workqueue.Snapshot[string] { return q.queue.Snapshot() }

// A part has a page of each list of the whole Snapshot, and the items that match are those of it,
// with their places, whatever was done before, and whether the queue can show parts or not.
func TestPart_IsOfTheSnapshot(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			q := workqueue.NewTypedRateLimitingQueue(
				workqueue.NewTypedItemExponentialFailureRateLimiter[string](
					time.Hour, 24*time.Hour),
				workqueue.Config[string]{})
			defer q.ShutDown()
			for range 400 {
				key := fmt.Sprint("k", r.IntN(60))
				switch r.IntN(8) {
				case 0:
					q.AddAfter(key, time.Duration(r.IntN(1000)+1)*time.Minute)
				case 1:
					q.AddRateLimited(key)
				case 2:
					if q.Len() > 0 {
						_, _ = q.Get()
					}
				case 3:
					q.Done(key)
				default:
					q.Add(key)
				}
			}
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			requireParts(t, q, q.Snapshot())
			requireParts(t, onlySnapshot{q}, q.Snapshot())
		})
	}
}

func requireParts(
	t *testing.T, q interface {
		Snapshot() workqueue.Snapshot[string]
	}, all workqueue.Snapshot[string],
) {
	t.Helper()
	total := workqueue.Totals{Ready: len(all.Ready), Processing: len(all.Processing),
		Again: len(all.Again), Waiting: len(all.Waiting)}
	pages := []struct{ skip, limit int }{{0, 0}, {0, 1}, {0, 2}, {0, 7}, {0, math.MaxInt}, {1, 0},
		{1, 1}, {3, 5}, {7, 7}, {30, 4}, {59, 1}, {60, 1}, {1, math.MaxInt}, {1000, math.MaxInt},
		{math.MaxInt, 1}, {math.MaxInt, math.MaxInt}}
	for _, page := range pages {
		p := workqueue.SnapshotOf(q, page.skip, page.limit)
		require.Equal(t, total, p.Total)
		require.Equal(t, all.Taken, p.Taken)
		require.Equal(t, all.Limited, p.Limited)
		requirePage(t, page.skip, page.limit, all.Ready, p.Ready)
		require.Len(t, p.Numbers, len(p.Ready))
		for i, number := range p.Numbers {
			require.Equal(t, page.skip+i+1, number)
		}
		requirePage(t, page.skip, page.limit, all.Processing, p.Processing)
		require.Equal(t, joined(slices.DeleteFunc(slices.Clone(all.Again), func(key string) bool {
			return !slices.Contains(p.Processing, key)
		})), joined(p.Again))
		requirePage(t, page.skip, page.limit, all.Waiting, p.Waiting)
		requireLastDue(t, all, p)
	}
	for i := range 60 {
		key := fmt.Sprint("k", i)
		p := workqueue.Find(q, func(item string) bool { return item == key })
		require.Equal(t, total, p.Total)
		requireLastDue(t, all, p)
		count := func(items []string) (n int) {
			for _, item := range items {
				if item == key {
					n++
				}
			}
			return n
		}
		require.Len(t, p.Ready, count(all.Ready), key)
		require.Len(t, p.Processing, count(all.Processing), key)
		require.Len(t, p.Again, count(all.Again), key)
		for n, item := range p.Ready {
			require.Equal(t, key, item)
			require.Equal(t, key, all.Ready[p.Numbers[n]-1])
		}
		waits := slices.IndexFunc(all.Waiting, func(w workqueue.Waiting[string]) bool {
			return w.Item == key
		})
		if waits < 0 {
			require.Empty(t, p.Waiting)
		} else {
			require.Equal(t, []workqueue.Waiting[string]{all.Waiting[waits]}, p.Waiting)
		}
	}
}

func requirePage[T any](t *testing.T, skip, limit int, all, page []T) {
	t.Helper()
	want := all[min(skip, len(all)):]
	require.Equal(t, joined(want[:min(limit, len(want))]), joined(page), "%d %d", skip, limit)
}

func joined[T any](items []T) string {
	var text strings.Builder
	for _, item := range items {
		fmt.Fprintln(&text, item)
	}
	return text.String()
}

func requireLastDue(t *testing.T, all workqueue.Snapshot[string], p workqueue.Part[string]) {
	t.Helper()
	var last time.Time
	for _, w := range all.Waiting {
		last = w.Due
	}
	require.Equal(t, last, p.LastDue)
}

// The pages of a Fair have each item once, in the order of the Snapshot, with what the Snapshot
// says of it.
func TestPart_OfAFair(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 0))
		w := newFairWorld(t, 3, map[string]int{"g1": 2, "g2": 3}, map[string]int{"g0": 1, "g3": 2})
		for range 200 {
			if random.IntN(4) == 0 {
				w.get()
				continue
			}
			w.add(fmt.Sprintf("g%d/%d", random.IntN(4), random.IntN(30)), random.IntN(3))
		}
		all := w.q.Snapshot()
		for _, size := range []int{1, 7, 100} {
			var pages workqueue.Snapshot[string]
			for skip := 0; skip < 200; skip += size {
				p := w.q.SnapshotOf(skip, size)
				require.LessOrEqual(t, len(p.Ready), size)
				require.Equal(t, len(all.Ready), p.Total.Ready)
				pages.Ready = append(pages.Ready, p.Ready...)
				pages.Processing = append(pages.Processing, p.Processing...)
				pages.Again = append(pages.Again, p.Again...)
				for _, key := range p.Ready {
					require.Equal(t, all.Priorities[key], p.Priorities[key])
					require.Equal(t, all.Held[key], p.Held[key])
				}
				require.LessOrEqual(t, len(p.Priorities), len(p.Ready))
			}
			require.Equal(t, joined(all.Ready), joined(pages.Ready))
			require.Equal(t, joined(all.Processing), joined(pages.Processing))
			require.Equal(t, joined(all.Again), joined(pages.Again))
		}
	}
}

// The items of a Config.Order are found, without a place.
func TestPart_WithoutAnOrder(t *testing.T) {
	q := workqueue.NewTyped(workqueue.Config[string]{Order: &lastFirst{}})
	defer q.ShutDown()
	for i := range 5 {
		q.Add(fmt.Sprint(i))
	}
	taken, _ := q.Get()
	q.Add(taken)
	p := q.SnapshotOf(3, 2)
	require.Len(t, p.Ready, 1)
	require.Empty(t, q.SnapshotOf(4, 2).Ready)
	p = q.SnapshotOf(0, 2)
	require.Equal(t, workqueue.Totals{Ready: 4, Processing: 1, Again: 1}, p.Total)
	require.Len(t, p.Ready, 2)
	require.Nil(t, p.Numbers)
	p = q.Find(func(item string) bool { return item == "2" || item == taken })
	require.Equal(t, []string{"2"}, p.Ready)
	require.Equal(t, []string{taken}, p.Processing)
	require.Equal(t, []string{taken}, p.Again)
}

type lastFirst struct{ items []string }

func (l *lastFirst) Touch(string)     {}
func (l *lastFirst) Push(item string) { l.items = append(l.items, item) }
func (l *lastFirst) Len() int         { return len(l.items) }
func (l *lastFirst) Pop() (item string) {
	item = l.items[len(l.items)-1]
	l.items = l.items[:len(l.items)-1]
	return item
}

// While workers take items and others are added, an item that stays in the queue is found once.
func TestPart_FindsWhatStays(t *testing.T) {
	q := workqueue.NewTyped(workqueue.Config[int]{})
	const stays = 5_000
	for i := range stays + 1 {
		q.Add(i)
	}
	var running sync.WaitGroup
	running.Go(func() {
		for i := range stays / 2 {
			item, _ := q.Get()
			q.Done(item)
			q.Add(-i - 1)
		}
	})
	for range 50 {
		p := q.Find(func(item int) bool { return item == stays })
		require.Equal(t, []int{stays}, p.Ready)
		require.Positive(t, p.Numbers[0])
	}
	running.Wait()
	q.ShutDown()
}

// While workers take items and others are added and wait, a page has at most limit items, each
// once, in order.
func TestPart_PagesWhileItemsMove(t *testing.T) {
	q := workqueue.NewTypedRateLimitingQueue[int](nil, workqueue.Config[int]{})
	const items = 2_000
	for i := range items {
		q.Add(i)
		q.AddAfter(i, time.Hour+time.Duration(i))
	}
	var running sync.WaitGroup
	running.Go(func() {
		for i := range items / 2 {
			item, _ := q.Get()
			q.Done(item)
			q.Add(items + i)
			q.CancelDelayed(i)
			q.AddAfter(items-1, time.Hour-time.Duration(i))
			q.Reschedule(items-2, time.Hour+time.Duration(i))
		}
	})
	for range 50 {
		p := q.SnapshotOf(items/2, 100)
		require.Len(t, p.Ready, 100)
		require.True(t, slices.IsSorted(p.Ready))
		require.LessOrEqual(t, len(p.Waiting), 100)
		once := map[int]bool{}
		for _, w := range p.Waiting {
			require.False(t, once[w.Item])
			once[w.Item] = true
		}
		require.False(t, p.LastDue.IsZero())
	}
	running.Wait()
	q.ShutDown()
}

// A look at many ready and waiting items takes no memory for them, and a search eight bytes for
// each item that waits; a page in the middle takes 16.
func TestPart_MemoryIsBounded(t *testing.T) {
	const items = 200_000
	q := workqueue.NewTypedRateLimitingQueue[int](nil, workqueue.Config[int]{})
	defer q.ShutDown()
	for i := range items {
		q.Add(i)
		if i < items/4 {
			q.AddAfter(-i-1, time.Hour+time.Duration(i))
		}
	}
	allocated := func(f func()) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	require.Less(t, allocated(func() {
		p := q.SnapshotOf(0, 100)
		require.Equal(t, workqueue.Totals{Ready: items, Waiting: items / 4}, p.Total)
		require.Len(t, p.Ready, 100)
		require.Len(t, p.Waiting, 100)
	}), uint64(64<<10))
	require.Less(t, allocated(func() {
		p := q.SnapshotOf(items/8, 100)
		require.Len(t, p.Ready, 100)
		require.Equal(t, items/8+1, p.Numbers[0])
		require.Equal(t, items/8, p.Ready[0])
		require.Len(t, p.Waiting, 100)
		require.Equal(t, -items/8-1, p.Waiting[0].Item)
	}), uint64(16*items/4+(64<<10)))
	require.Less(t, allocated(func() {
		p := q.Find(func(item int) bool { return item == items-1 || item == -1 })
		require.Equal(t, []int{items}, p.Numbers)
		require.Len(t, p.Waiting, 1)
	}), uint64(8*items/4+(64<<10)))
}
