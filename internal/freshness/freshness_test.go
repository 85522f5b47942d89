// SPDX-License-Identifier: Apache-2.0

package freshness

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// list returns a list that is requested now.
func (t *Tracker) list(version string, asOf time.Time) Handover {
	return Handover{Kind: List, ResourceVersion: version, At: asOf, Losses: t.Losses()}
}

func changeTo(version string) Handover {
	return Handover{Kind: Change, ResourceVersion: version}
}

func at(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }

// checkLaws checks F2 to F5.
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
	require.True(tb, !t.isBlind || len(t.marks) == 0, "F5")
}

// handOver hands h over in a call that fails with err, after the queue has counted its items; 0
// means that it counts nothing.
func (t *Tracker) handOver(tb testing.TB, h Handover, items int, err error) {
	tb.Helper()
	t.Begin(h)
	if items > 0 {
		t.Queued(items)
	}
	t.End(h, err)
	t.checkLaws(tb)
}

// current notes that everything which was handed over was current then.
func (t *Tracker) current(asOf time.Time) { t.Note(Handover{Kind: Current, At: asOf}) }

// process processes a delta.
func (t *Tracker) process(tb testing.TB, items int) {
	tb.Helper()
	require.NoError(tb, t.Process(items, 1, func() error { t.Stored(1); return nil }))
	t.checkLaws(tb)
}

// Without a queue, what was handed over is in the copy. A call that fails hands nothing over.
func TestTracker_WithoutAQueue(t *testing.T) {
	f := Direct()
	f.handOver(t, f.list("5", at(5)), 0, nil)
	f.handOver(t, changeTo("6"), 0, nil)
	require.Equal(t, Moment{"6", at(5)}, f.HandedOver().Moment)
	f.handOver(t, changeTo("7"), 0, errors.New("refused"))
	require.Equal(t, Moment{"6", at(5)}, f.HandedOver().Moment)
	f.current(at(7))
	f.current(at(6)) // time does not go back
	require.Equal(t, Moment{"6", at(7)}, f.HandedOver().Moment)
	f.Lose()
	f.handOver(t, Handover{Kind: Change, ResourceVersion: "8", At: at(8)}, 0, nil)
	f.Note(Handover{Kind: Bookmark, ResourceVersion: "9", At: at(9)})
	require.Equal(t, HandedOver{Moment{ResourceVersion: "9"}, at(8), at(9)}, f.HandedOver())
}

// The copy has synced once it has held a list as a whole. Before that, the order of changes is not
// known.
func TestTracker_Synced(t *testing.T) {
	f := New(nil)
	isSynced := func() bool {
		select {
		case <-f.Synced():
			return true
		default:
			return false
		}
	}
	f.handOver(t, changeTo("3"), 1, nil)
	f.process(t, 1)
	require.Empty(t, f.Held())
	f.handOver(t, f.list("5", at(5)), 2, nil)
	require.False(t, isSynced())
	f.process(t, 2)
	require.True(t, isSynced())
	require.Equal(t, Moment{"5", at(5)}, f.Held())
}

// After a loss the version remains true, and the time is not known until a list comes.
func TestTracker_Lose(t *testing.T) {
	f := New(nil)
	f.handOver(t, f.list("5", at(5)), 1, nil)
	f.process(t, 1)
	f.Lose()
	f.handOver(t, changeTo("6"), 2, nil)
	f.current(at(6))
	f.process(t, 2)
	require.Equal(t, Moment{ResourceVersion: "6"}, f.Held())
	require.Equal(t, Moment{ResourceVersion: "6"}, f.HandedOver().Moment)
	f.handOver(t, f.list("9", at(9)), 3, nil)
	require.Equal(t, Moment{ResourceVersion: "6"}, f.Held())
	f.process(t, 3)
	require.Equal(t, Moment{"9", at(9)}, f.Held())
}

// A list that shows the state that was there before is as old as that.
func TestTracker_ListOfAnOldState(t *testing.T) {
	f := New(nil)
	f.handOver(t, f.list("5", at(5)), 1, nil)
	f.Lose()
	f.handOver(t, f.list("5", time.Time{}), 2, nil)
	f.process(t, 2)
	require.Equal(t, Moment{"5", at(5)}, f.Held())
}

// A list that was requested before a change is lost does not end the loss: not if it is queued
// then, and not if it arrives later.
func TestTracker_LoseDuringAList(t *testing.T) {
	f := New(nil)
	f.handOver(t, f.list("5", at(5)), 2, nil)
	f.Lose()
	f.process(t, 2)
	require.Equal(t, Moment{ResourceVersion: "5"}, f.Held())
	requested := f.list("6", at(6))
	f.Lose()
	f.handOver(t, requested, 3, nil)
	f.process(t, 3)
	require.Equal(t, Moment{ResourceVersion: "6"}, f.Held())
	require.Equal(t, Moment{ResourceVersion: "6"}, f.HandedOver().Moment)
	f.handOver(t, f.list("6", at(7)), 4, nil)
	f.process(t, 4)
	require.Equal(t, Moment{"6", at(7)}, f.Held())
}

// After the consumer has failed, nothing is held until a list that was handed over later.
func TestTracker_ConsumerFails(t *testing.T) {
	f := New(nil)
	refused := errors.New("refused")
	f.handOver(t, f.list("5", at(5)), 1, nil)
	fail := func() error { f.Stored(1); return refused }
	require.Equal(t, refused, f.Process(1, 1, fail))
	require.Zero(t, f.Held().AsOf, "Stored does not hide a failure that follows")
	f.handOver(t, changeTo("6"), 2, nil)
	f.process(t, 2)
	require.Equal(t, "5", f.Held().ResourceVersion)
	f.handOver(t, f.list("5", at(5)), 3, nil)
	require.Panics(t, func() { _ = f.Process(3, 1, func() error { panic("broken") }) })
	f.handOver(t, f.list("7", at(7)), 4, nil)
	f.process(t, 4)
	require.Equal(t, Moment{"7", at(7)}, f.Held())
}

// Deltas of one item that are stored in several calls are held after the last one.
func TestTracker_StoredInParts(t *testing.T) {
	f := New(nil)
	f.handOver(t, f.list("5", at(5)), 1, nil)
	require.NoError(t, f.Process(1, 3, func() error {
		for range 3 {
			require.Empty(t, f.Held())
			f.Stored(1)
		}
		return nil
	}))
	require.Equal(t, Moment{"5", at(5)}, f.Held())
}

// Once something was held back that the queue has not counted, or that it has popped, the Tracker
// is blind: what is held does not move any more, and waits end.
func TestTracker_Blind(t *testing.T) {
	for name, holdBack := range map[string]func(f *Tracker){
		"not counted":   func(f *Tracker) { f.handOver(t, changeTo("6"), 0, nil) },
		"counted later": func(f *Tracker) { f.Queued(2) },
		"counted twice": func(f *Tracker) {
			f.Begin(changeTo("6"))
			f.Queued(2)
			f.Queued(3)
			f.End(changeTo("6"), nil)
		},
		"dropped": func(f *Tracker) {
			f.handOver(t, changeTo("6"), 2, nil)
			require.NoError(t, f.Process(2, 1, func() error { return nil }))
		},
		"a part is dropped": func(f *Tracker) {
			f.handOver(t, changeTo("6"), 2, nil)
			require.NoError(t, f.Process(2, 2, func() error { f.Stored(1); return nil }))
		},
		"more is stored than was popped": func(f *Tracker) {
			f.handOver(t, changeTo("6"), 2, nil)
			require.NoError(t, f.Process(2, 1, func() error { f.Stored(2); return nil }))
		},
		"stored is what was not popped": func(f *Tracker) {
			f.handOver(t, changeTo("6"), 2, nil)
			f.Stored(1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := New(nil)
				f.handOver(t, f.list("5", at(5)), 1, nil)
				f.process(t, 1)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				waiting := make(chan error)
				go func() { waiting <- f.Await(ctx, "6") }()
				synctest.Wait()
				holdBack(f)
				require.Equal(t, errBlind, <-waiting)
				<-f.Blind()
				require.Equal(t, errBlind, f.Err())
				f.handOver(t, f.list("9", at(9)), 7, nil)
				f.process(t, 7)
				require.Equal(t, Moment{ResourceVersion: "5"}, f.Held())
				require.Zero(t, f.HandedOver().AsOf)
				require.NoError(t, f.Await(t.Context(), "5"))
			})
		})
	}
	f := New(nil)
	f.handOver(t, changeTo("6"), 0, errors.New("refused"))
	require.NoError(t, f.Err(), "nothing was handed over")
	f.handOver(t, Handover{Kind: Bookmark, ResourceVersion: "7"}, 0, nil)
	require.NoError(t, f.Err(), "a bookmark changes no object")
}

// A wrapper may pass calls on in its own goroutine, and process in another one. Then nothing is
// held that is not stored.
func TestTracker_OtherGoroutines(t *testing.T) {
	for range 200 {
		f := New(nil)
		later := make(chan int, 10)
		var stored atomic.Int64
		go func() {
			for items := range later {
				f.Queued(items)
				_ = f.Process(items, 1, func() error {
					go func() { stored.Store(int64(items)); f.Stored(1) }()
					return nil
				})
			}
		}()
		for i := 1; i <= 10; i++ {
			a := f.list(strconv.Itoa(i), at(i))
			f.Begin(a)
			later <- i
			f.End(a, nil)
			held, _ := strconv.ParseInt(f.Held().ResourceVersion, 10, 64)
			require.LessOrEqual(t, held, stored.Load())
		}
		close(later)
	}
}

// Await ends when the version is held, with its context, or with Stop.
func TestTracker_Await(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(nil)
		items := 0
		arrives := func(h Handover) {
			items++
			f.handOver(t, h, items, nil)
			f.process(t, items)
		}
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
		arrives(f.list("5", time.Time{}))
		require.Equal(t, []string{"5 <nil>"}, take())
		arrives(changeTo("7"))
		require.Equal(t, []string{"6 <nil>"}, take())
		await("8")
		cancel(errors.New("given up"))
		require.Equal(t, []string{"8 given up"}, take())
		require.NoError(t, f.Await(ctx, "7"), "what is held wins")

		ctx = t.Context()
		await("8")
		gone := f.list("7", time.Now().Add(-1))
		gone.Inferred = errors.New("not served")
		arrives(gone)
		require.Empty(t, take(), "that was before the call")
		gone.At = time.Now()
		arrives(gone)
		require.Equal(t, []string{"8 not served"}, take())
		require.NoError(t, f.Await(ctx, "7"))
		arrives(f.list("7", time.Now()))

		await("8")
		f.Stop(errors.New("stopped"))
		require.Equal(t, []string{"8 stopped"}, take())
		require.EqualError(t, f.Await(ctx, "8"), "stopped")
		require.NoError(t, f.Await(ctx, "7"))
		arrives(f.list("opaque", time.Time{}))
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
		f, q := New(nil), &queue{content: map[int][]change{}}
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
				a, lost = f.list(strconv.Itoa(version), at(now)), false
				if random.IntN(4) == 0 { // before the answer
					f.Lose()
					lost = true
				}
			}
			if put == nil && random.IntN(2) == 0 {
				f.Note(a)
				return
			}
			f.Begin(a)
			if put != nil {
				put()
			}
			f.Queued(q.queued)
			f.End(a, nil)
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
			_ = f.Process(q.popped, len(changes), func() error {
				for i, c := range changes {
					if fails && i == len(changes)-1 {
						return errors.New("refused")
					}
					copied[c.key] = c.version
					f.Stored(1)
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
				handOver(false, nil)
			case op == 8:
				advance(random.IntN(keys))
				f.Lose()
				lost = true
			case op == 9:
				relist()
			case op == 10:
				f.current(at(now))
			default:
				pop(random.IntN(12) == 0)
			}
			check()
		}
		for lost = true; lost; {
			relist()
		}
		for len(q.order) > 0 {
			pop(false)
			check()
		}
		require.Equal(t, Moment{strconv.Itoa(version), at(now)}, f.Held(), "seed %d", seed)
	}
}
