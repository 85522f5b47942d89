// SPDX-License-Identifier: Apache-2.0

package freshness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func list(version string, asOf time.Time) Arrival {
	return Arrival{Moment: Moment{version, asOf}, IsList: true}
}

func changeTo(version string) Arrival {
	return Arrival{Moment: Moment{ResourceVersion: version}}
}

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// checkLaws checks F2 to F4.
func (t *Tracker) checkLaws(tb testing.TB) {
	tb.Helper()
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.stored
	for _, m := range t.marks {
		require.Greater(tb, m.items, before, "F2: %+v", t.marks)
		before = m.items
	}
	require.LessOrEqual(tb, before, max(t.items, t.stored), "F2: more items than were queued")
	if t.lost {
		require.Zero(tb, t.held.AsOf, "F3")
		for _, m := range t.marks {
			require.Zero(tb, m.AsOf, "F3")
		}
	}
	require.True(tb, !t.failed || len(t.marks) == 0, "F4")
}

func (t *Tracker) arrives(tb testing.TB, a Arrival) {
	tb.Helper()
	require.NoError(tb, t.HandOver(a, func() error { return nil }))
	t.checkLaws(tb)
}

// Without a queue, the copy holds at once what is handed over. A put that fails hands nothing over.
func TestTracker_WithoutAQueue(t *testing.T) {
	f := New()
	f.arrives(t, changeTo("3"))
	require.Empty(t, f.Held(), "before the first list, the order of changes is not known")
	isSynced := func() bool {
		select {
		case <-f.Synced():
			return true
		default:
			return false
		}
	}
	require.False(t, isSynced())
	f.arrives(t, list("5", at(5)))
	require.True(t, isSynced())
	require.Equal(t, Moment{"5", at(5)}, f.Held())
	f.arrives(t, changeTo("6"))
	require.Equal(t, Moment{"6", at(5)}, f.Held())
	refused := errors.New("refused")
	err := f.HandOver(changeTo("7"), func() error { return refused })
	require.Equal(t, refused, err)
	require.Equal(t, Moment{"6", at(5)}, f.Held())
	require.Equal(t, f.Held(), f.Received())
	f.Current(at(7))
	f.Current(at(6)) // time does not go back
	require.Equal(t, Moment{"6", at(7)}, f.Held())
}

// After a loss the version remains true, and the time is not known until a list comes.
func TestTracker_Lose(t *testing.T) {
	f := New()
	f.arrives(t, list("5", at(5)))
	f.Lose()
	f.arrives(t, changeTo("6"))
	f.Current(at(6))
	require.Equal(t, Moment{ResourceVersion: "6"}, f.Held())
	require.Equal(t, Moment{ResourceVersion: "6"}, f.Received())
	f.arrives(t, list("9", at(9)))
	require.Equal(t, Moment{"9", at(9)}, f.Held())
}

// A list that shows the state that was there before is as old as that.
func TestTracker_ListOfAnOldState(t *testing.T) {
	f := New()
	f.arrives(t, list("5", at(5)))
	f.Lose()
	f.arrives(t, list("5", time.Time{}))
	require.Equal(t, Moment{"5", at(5)}, f.Held())
}

// A list that is queued when a change is lost does not end the loss when it is stored.
func TestTracker_LoseWhileAListIsQueued(t *testing.T) {
	f := New()
	require.NoError(t, f.HandOver(list("5", at(5)),
		func() error { f.Queued(2); return nil }))
	f.Lose()
	require.NoError(t, f.Process(2, func() error { return nil }))
	f.checkLaws(t)
	require.Equal(t, Moment{ResourceVersion: "5"}, f.Held())
}

// A process function that is wrapped, and not called, or that fails, changes nothing for long.
func TestTracker_Process(t *testing.T) {
	var none *Tracker
	none.Queued(1)
	require.NoError(t, none.Process(1, func() error { return nil }), "a queue without a Tracker")

	f := New()
	f.Stored() // outside of Process it means nothing
	put := func(items int) func() error { return func() error { f.Queued(items); return nil } }
	five := list("5", at(5))
	require.NoError(t, f.HandOver(five, put(1)))
	refused := errors.New("refused")
	require.Equal(t, refused, f.Process(1, func() error { f.Stored(); return refused }))
	require.Zero(t, f.Held().AsOf, "Stored does not hide a failure that follows")
	require.NoError(t, f.HandOver(changeTo("6"), put(2)))
	require.NoError(t, f.Process(2, func() error { return nil }))
	require.Equal(t, "5", f.Held().ResourceVersion)
	require.NoError(t, f.HandOver(five, put(3)))
	require.Panics(t, func() { _ = f.Process(3, func() error { panic("broken") }) })
	require.NoError(t, f.HandOver(five, put(4)))
	require.NoError(t, f.Process(4, func() error { return nil }))
	require.Equal(t, Moment{"5", at(5)}, f.Held())
}

// Await ends when the version is held, with its context, or with Stop.
func TestTracker_Await(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New()
		ctx, cancel := context.WithCancelCause(t.Context())
		results := make(chan string, 10)
		await := func(version string) {
			go func() { results <- fmt.Sprint(version, " ", f.Await(ctx, version)) }()
			synctest.Wait()
		}
		take := func() (all []string) {
			synctest.Wait()
			for len(results) > 0 {
				all = append(all, <-results)
			}
			slices.Sort(all)
			return all
		}
		await("5")
		await("6")
		f.arrives(t, list("5", time.Time{}))
		require.Equal(t, []string{"5 <nil>"}, take())
		f.arrives(t, changeTo("7"))
		require.Equal(t, []string{"6 <nil>"}, take())
		await("8")
		cancel(errors.New("given up"))
		require.Equal(t, []string{"8 given up"}, take())
		require.NoError(t, f.Await(ctx, "7"), "what is held wins")

		ctx = t.Context()
		await("8")
		f.Stop(errors.New("stopped"))
		require.Equal(t, []string{"8 stopped"}, take())
		require.EqualError(t, f.Await(ctx, "8"), "stopped")
		require.NoError(t, f.Await(ctx, "7"))
		f.arrives(t, list("opaque", time.Time{}))
		require.ErrorContains(t, f.Await(ctx, "7"), "opaque")
	})
}

// queue merges changes of one object, like a DeltaFIFO.
type queue struct {
	order   []int // keys
	content map[int][]change
	queued  int
	popped  int
}

type change struct{ version, key int }

func (q *queue) put(c change) {
	if len(q.content[c.key]) == 0 {
		q.order = append(q.order, c.key)
		q.queued++
	}
	q.content[c.key] = append(q.content[c.key], c)
}

// With random changes, lists, bookmarks, losses and failures, the copy holds what Held says, and in
// the end everything.
func TestModel(t *testing.T) {
	const keys = 4
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 7))
		f, q := New(), &queue{content: map[int][]change{}}
		version, now := 0, 0
		newest := [][keys]int{{}}  // newest[v][k]: the last change of k up to v
		current := map[int]int{}   // current[second] = version
		copied := [keys]int{}      // by the consumer
		lost := false              // a change was lost on the way, and no list has come
		advance := func(key int) { // the collection changes
			version, now = version+1, now+1
			next := newest[version-1]
			if key >= 0 {
				next[key] = version
			}
			newest, current[now] = append(newest, next), version
		}
		handOver := func(isList bool, put func()) {
			a := changeTo(strconv.Itoa(version))
			if isList {
				a, lost = list(strconv.Itoa(version), at(now)), false
			}
			require.NoError(t, f.HandOver(a, func() error {
				put()
				if q.queued > f.items || random.IntN(2) == 0 {
					f.Queued(q.queued)
				}
				return nil
			}))
		}
		relist := func() {
			handOver(true, func() {
				for k, v := range newest[version] {
					q.put(change{v, k})
				}
			})
		}
		pop := func(fails bool) {
			if len(q.order) == 0 {
				return
			}
			key := q.order[0]
			changes := q.content[key]
			q.order = q.order[1:]
			delete(q.content, key)
			q.popped++
			_ = f.Process(q.popped, func() error {
				if fails {
					return errors.New("refused")
				}
				for _, c := range changes {
					copied[c.key] = c.version
				}
				if random.IntN(2) == 0 {
					f.Stored()
				}
				return nil
			})
		}
		check := func() {
			f.checkLaws(t)
			held := f.Held()
			v, _ := strconv.Atoi(held.ResourceVersion)
			for k := range keys {
				require.GreaterOrEqual(t, copied[k], newest[v][k], "seed %d at %d", seed, v)
			}
			if !held.AsOf.IsZero() {
				asOf := current[int(held.AsOf.Sub(start)/time.Second)]
				for k := range keys {
					require.GreaterOrEqual(t, copied[k], newest[asOf][k], "seed %d", seed)
				}
			}
		}
		for range 150 {
			switch op := random.IntN(20); {
			case op < 7 && !lost:
				key := random.IntN(keys)
				advance(key)
				handOver(false, func() { q.put(change{version, key}) })
			case op == 7 && !lost:
				advance(-1)
				handOver(false, func() {})
			case op == 8:
				advance(random.IntN(keys))
				f.Lose()
				lost = true
			case op == 9:
				relist()
			case op == 10:
				f.Current(at(now))
			default:
				pop(random.IntN(12) == 0)
			}
			check()
		}
		relist()
		for len(q.order) > 0 {
			pop(false)
			check()
		}
		require.Equal(t, Moment{strconv.Itoa(version), at(now)}, f.Held(), "seed %d", seed)
	}
}
