// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/internal/freshness"
	"example.com/informerstack/store"
)

// followed is a queue with a Tracker, and the calls of a reflector.
type followed struct {
	t       *testing.T
	tracker *freshness.Tracker
	Queue
}

// eachFollowed runs test on both queues.
func eachFollowed(t *testing.T, test func(t *testing.T, q followed)) {
	for name, opts := range map[string]Options{
		"DeltaFIFO": {KnownObjects: store.New(store.MetaNamespaceKeyFunc, store.Options{})},
		"RealFIFO":  {AtomicEvents: true, UnlockWhileProcessing: true},
	} {
		t.Run(name, func(t *testing.T) { test(t, follow(t, opts)) })
	}
}

func follow(t *testing.T, opts Options) followed {
	tracker := freshness.New(nil)
	opts.Progress = tracker
	if opts.AtomicEvents {
		return followed{t, tracker, NewRealFIFO(opts)}
	}
	return followed{t, tracker, NewDeltaFIFO(opts)}
}

func changeTo(version string) freshness.Handover {
	return freshness.Handover{Kind: freshness.Change, ResourceVersion: version}
}

func listOf(version string, asOf time.Time) freshness.Handover {
	return freshness.Handover{Kind: freshness.List, ResourceVersion: version, At: asOf}
}

func (q followed) handOver(a freshness.Handover, put func() error) {
	q.t.Helper()
	q.tracker.Begin(a)
	err := put()
	q.tracker.End(a, err)
	require.NoError(q.t, err)
	require.NoError(q.t, q.tracker.Err())
}

// hand hands over what put queues.
func (q followed) hand(version string, put func() error) {
	q.t.Helper()
	q.handOver(changeTo(version), put)
	q.Queue.(interface{ checkLaws(t testing.TB) }).checkLaws(q.t)
}

func (q followed) update(obj *corev1.ConfigMap) {
	q.t.Helper()
	q.hand(obj.ResourceVersion, func() error { return q.Update(obj) })
}

func (q followed) bookmark(version string) {
	q.t.Helper()
	q.tracker.Note(changeTo(version))
}

func (q followed) list(version string, objects ...any) {
	q.t.Helper()
	a := listOf(version, time.Now())
	a.Losses = q.tracker.Losses()
	q.handOver(a, func() error { return q.Replace(objects, version) })
}

// reached returns the version that the consumer has reached.
func (q followed) reached() string { return q.tracker.Held().ResourceVersion }

func named(name, resourceVersion string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: resourceVersion},
	}
}

// process returns a process function with that result.
func process(q Queue, result error) PopProcessFunc {
	return func(obj any, _ bool) error {
		if f, ok := q.(followed); ok && result == nil {
			f.tracker.Stored(len(obj.(Deltas)))
		}
		return result
	}
}

func popAll(t *testing.T, q Queue, result error) {
	t.Helper()
	q.Close()
	for {
		_, err := q.Pop(process(q, result))
		if errors.Is(err, ErrFIFOClosed) {
			return
		}
		require.Equal(t, result, err)
	}
}

func popOne(t *testing.T, q Queue, result error) {
	t.Helper()
	q.Close() // a Pop of a lost item must not block
	_, err := q.Pop(process(q, result))
	require.Equal(t, result, err)
}

// The resourceVersion of a list is that of the LIST, and it is reached when the whole list is
// processed, and HasSynced is true: even if the next list has come before. The versions of its
// objects are not reached: the newest object may come first.
func TestReached_ListAfterItsLastObject(t *testing.T) {
	eachFollowed(t, func(t *testing.T, q followed) {
		q.list("100", named("a", "60"), named("b", "20"))
		assert.Empty(t, q.reached())
		q.list("200", named("a", "60"), named("c", "120"))
		for !q.HasSynced() {
			assert.Empty(t, q.reached())
			popOne(t, q, nil)
		}
		assert.Equal(t, "100", q.reached())
		popAll(t, q, nil)
		assert.Equal(t, "200", q.reached())
	})
}

// A change is reached when it and all changes before it are processed. A DeltaFIFO pops a@4 before
// b@3; then 4 is not reached.
func TestReached_EveryChangeUpToIt(t *testing.T) {
	eachFollowed(t, func(t *testing.T, q followed) {
		q.list("1")
		popAll(t, q, nil)
		for _, obj := range []*corev1.ConfigMap{named("a", "2"), named("b", "3"), named("a", "4")} {
			q.update(obj)
		}
		assert.Equal(t, "1", q.reached())
		popOne(t, q, nil)
		assert.Equal(t, "2", q.reached())
		popAll(t, q, nil)
		assert.Equal(t, "4", q.reached())
	})
}

// A bookmark is reached when the items before it are processed; at once if the queue is empty.
func TestReached_Bookmark(t *testing.T) {
	eachFollowed(t, func(t *testing.T, q followed) {
		q.list("5", named("a", "1"))
		q.bookmark("6")
		assert.Empty(t, q.reached())
		popAll(t, q, nil)
		assert.Equal(t, "6", q.reached())
		q.bookmark("7")
		assert.Equal(t, "7", q.reached())
	})
}

// A list, and then each change, is reached when its processing ends, even if the call that has
// queued it has not returned: a handler that reacts to the change finds it reached. The object may
// have no version any more.
func TestReached_ByTheChangeItself(t *testing.T) {
	eachFollowed(t, func(t *testing.T, q followed) {
		arrives := func(a freshness.Handover, put func() error) {
			q.handOver(a, func() error {
				require.NoError(t, put())
				popAll(t, q, nil)
				assert.Equal(t, a.ResourceVersion, q.reached())
				return nil
			})
		}
		list := []any{named("a", "1")}
		arrives(listOf("5", time.Now()), func() error { return q.Replace(list, "5") })
		arrives(changeTo("9"), func() error { return q.Add(named("z", "")) })
		arrives(changeTo("10"), func() error { return q.Add(named("b", "10")) })
	})
}

// A change that is queued without a version, because it is in no order, moves nothing. Later
// versions wait for it.
func TestReached_ChangesInNoOrder(t *testing.T) {
	eachFollowed(t, func(t *testing.T, q followed) {
		q.handOver(freshness.Handover{}, func() error { return q.Add(named("z", "4")) })
		popAll(t, q, nil)
		assert.Empty(t, q.reached())
		q.list("5", named("z", "4"))
		popAll(t, q, nil)
		q.handOver(freshness.Handover{}, func() error { return q.Add(named("c", "9")) })
		q.bookmark("10")
		assert.Equal(t, "5", q.reached())
		popAll(t, q, nil)
		assert.Equal(t, "10", q.reached())
	})
}

// An item that is being processed is not yet processed.
func TestReached_NotWhileProcessing(t *testing.T) {
	q := follow(t, Options{AtomicEvents: true, UnlockWhileProcessing: true})
	q.list("1")
	popAll(t, q, nil)
	q.update(named("a", "2"))
	q.update(named("b", "3"))
	require.NoError(t, q.Queue.(*RealFIFO).PopBatch(func(deltas []Delta, _ bool) error {
		require.Len(t, deltas, 2)
		q.bookmark("4")
		assert.Equal(t, "1", q.reached())
		q.tracker.Stored(len(deltas))
		return nil
	}, nil))
	assert.Equal(t, "4", q.reached())
}

// After a failure no version is reached until a list that arrived later is processed. One that
// waited does not count: a DeltaFIFO has merged a part of it with the change that failed.
func TestReached_NotPastAFailure(t *testing.T) {
	for name, fail := range map[string]func(t *testing.T, q Queue){
		"error": func(t *testing.T, q Queue) { popOne(t, q, errors.New("refused")) },
		"panic": func(t *testing.T, q Queue) {
			assert.Panics(t, func() { _, _ = q.Pop(func(any, bool) error { panic("broken") }) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachFollowed(t, func(t *testing.T, q followed) {
				q.list("1")
				popAll(t, q, nil)
				q.update(named("a", "2"))
				q.update(named("b", "3"))
				q.list("4", named("b", "3"))
				require.False(t, q.tracker.Held().AsOf.IsZero())
				fail(t, q)
				require.True(t, q.tracker.Held().AsOf.IsZero())
				popAll(t, q, nil)
				q.bookmark("5")
				assert.Equal(t, freshness.Moment{ResourceVersion: "1"}, q.tracker.Held())

				q.list("6", named("a", "2"))
				assert.Equal(t, "1", q.reached())
				popAll(t, q, nil)
				assert.Equal(t, "6", q.reached())
				require.False(t, q.tracker.Held().AsOf.IsZero())
			})
		})
	}
}

// A delete is reached like any other change, even if it is dropped because the object is not known.
func TestReached_ByADelete(t *testing.T) {
	eachFollowed(t, func(t *testing.T, q followed) {
		q.list("5")
		q.hand("6", func() error { return q.Add(named("a", "6")) })
		q.hand("7", func() error { return q.Delete(named("a", "7")) })
		popAll(t, q, nil)
		assert.Equal(t, "7", q.reached())
		q.hand("8", func() error { return q.Delete(named("a", "8")) })
		popAll(t, q, nil)
		assert.Equal(t, "8", q.reached())
	})
}

// A version is reached at the call of Stored: the handlers that the consumer notifies afterwards
// find it reached.
func TestReached_ByStored(t *testing.T) {
	for name, opts := range map[string]Options{
		"DeltaFIFO": {}, "RealFIFO": {AtomicEvents: true},
		"RealFIFO unlocked": {AtomicEvents: true, UnlockWhileProcessing: true},
	} {
		t.Run(name, func(t *testing.T) {
			q := follow(t, opts)
			q.Close() // a Pop of a lost item must not block
			pop := func(before, want string) {
				t.Helper()
				_, err := q.Pop(func(obj any, _ bool) error {
					for range obj.(Deltas) {
						require.Equal(t, before, q.reached(), "before the deltas are applied")
						q.tracker.Stored(1)
					}
					require.Equal(t, want, q.reached(), "in the process function")
					return nil
				})
				require.NoError(t, err)
				require.Equal(t, want, q.reached(), "after it")
			}
			q.list("5", named("a", "3"))
			pop("", "5")
			q.hand("6", func() error { return q.Add(named("b", "6")) })
			q.hand("7", func() error { return q.Delete(named("b", "7")) })
			if opts.AtomicEvents {
				pop("5", "6")
				pop("6", "7")
			} else {
				pop("5", "7")
			}
		})
	}
}

// With random operations and failures, a reached version means that every change up to it has been
// applied.
func TestReached_MeansWhatItSays(t *testing.T) {
	smallLimits(t)
	const keys = 5
	for seed := range uint64(90) {
		random := rand.New(rand.NewPCG(seed, 0))
		version := 0
		last := [][keys]int{{}} // last[v][k]: the version of key k's last change up to v
		applied := [keys]int{}
		q := follow(t, [...]Options{
			{}, {KnownObjects: &knownObjects{objs: map[string]any{}}},
			{AtomicEvents: true, UnlockWhileProcessing: true},
		}[seed%3])
		if seed%3 == 1 {
			q.Queue = NewRealFIFO(Options{
				KnownObjects: &knownObjects{objs: map[string]any{}}, Progress: q.tracker,
			})
		}
		check := func() {
			v, _ := strconv.Atoi(q.reached())
			for k := range keys {
				require.GreaterOrEqual(t, applied[k], last[v][k], "seed %d: key %d at version %d",
					seed, k, v)
			}
		}
		apply := func(obj any) {
			o := obj.(*corev1.ConfigMap)
			applied[o.Name[0]-'a'], _ = strconv.Atoi(o.ResourceVersion)
		}
		change := func() {
			version++
			k := random.IntN(keys)
			next := last[version-1]
			next[k] = version
			last = append(last, next)
			q.update(named(string(rune('a'+k)), strconv.Itoa(version)))
		}
		relist := func() {
			var list []any
			for k, v := range last[version] {
				list = append(list, named(string(rune('a'+k)), strconv.Itoa(v)))
			}
			q.list(strconv.Itoa(version), list...)
		}
		process := func(obj any, _ bool) error {
			real, isReal := q.Queue.(*RealFIFO)
			for isReal && real.isUnlocked() && random.IntN(3) == 0 { // more arrives meanwhile
				if random.IntN(4) == 0 {
					relist()
				} else {
					change()
				}
			}
			fails := -1
			if random.IntN(10) == 0 {
				fails = random.IntN(len(obj.(Deltas)))
			}
			for i, d := range obj.(Deltas) {
				if i == fails {
					return errors.New("refused")
				}
				if all, ok := d.Object.(ReplacedAllInfo); ok {
					for _, o := range all.Objects {
						apply(o)
					}
					continue
				}
				apply(d.Object)
			}
			check()
			q.tracker.Stored(len(obj.(Deltas)))
			check()
			return nil
		}
		processBatch := func(deltas []Delta, initial bool) error {
			return process(Deltas(deltas), initial)
		}
		waiting := func() int { // popping an empty queue would block
			if d, ok := q.Queue.(*DeltaFIFO); ok {
				return len(d.queue)
			}
			return len(q.Queue.(*RealFIFO).items)
		}
		pop := func() {
			if real, ok := q.Queue.(*RealFIFO); ok && random.IntN(2) == 0 {
				_ = real.PopBatch(processBatch, process)
			} else {
				_, _ = q.Pop(process)
			}
		}
		for range 200 {
			switch op := random.IntN(10); {
			case op < 4:
				change()
			case op == 4:
				version++
				last = append(last, last[version-1])
				q.bookmark(strconv.Itoa(version))
			case op == 5:
				relist()
			case waiting() > 0:
				pop()
			}
			check()
		}
		relist()
		popAll(t, q, nil)
		require.Equal(t, strconv.Itoa(version), q.reached(), "seed %d: nothing is left", seed)
	}
}

// A time is reached with everything that was handed over before it was known.
func TestReached_WithItsTime(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	eachFollowed(t, func(t *testing.T, q followed) {
		current := func(asOf time.Time) {
			q.tracker.Note(freshness.Handover{Kind: freshness.Current, At: asOf})
		}
		held := func(version string, asOf time.Time) {
			t.Helper()
			want := freshness.Moment{ResourceVersion: version, AsOf: asOf}
			assert.Equal(t, want, q.tracker.Held())
		}
		q.handOver(listOf("5", at), func() error { return q.Replace(nil, "5") })
		popAll(t, q, nil)
		q.update(named("a", "6"))
		current(at.Add(time.Second))
		q.update(named("b", "7"))
		current(at.Add(time.Minute))
		held("5", at)
		popOne(t, q, nil)
		held("6", at.Add(time.Second))
		popAll(t, q, nil)
		held("7", at.Add(time.Minute))
	})
}

// counts is a Progress that writes down its calls.
type counts []string

func (c *counts) Queued(items int) { *c = append(*c, fmt.Sprint("queued ", items)) }

func (c *counts) Process(items, deltas int, process func() error) error {
	*c = append(*c, fmt.Sprintf("process %d, %d deltas", items, deltas))
	return process()
}

func (c *counts) take() string {
	defer func() { *c = nil }()
	return strings.Join(*c, "; ")
}

// Each call that succeeds is reported once, even if it queues nothing. A call that fails is not
// reported.
func TestProgress_OncePerCall(t *testing.T) {
	known := &knownObjects{objs: map[string]any{"known": named("known", "1")}}
	for name, want := range map[string]struct {
		opts                  Options
		dropped, list, popped string
	}{
		"DeltaFIFO": {Options{KnownObjects: known},
			"queued 1", "queued 3", "process 1, 3 deltas"},
		"RealFIFO": {Options{KnownObjects: known},
			"queued 3", "queued 6", "process 1, 1 deltas"},
		"atomic": {Options{AtomicEvents: true},
			"queued 3", "queued 4", "process 1, 1 deltas"},
		"atomic, with bookmarks": {Options{AtomicEvents: true, EmitDeltaTypeBookmark: true},
			"queued 3", "queued 4", "process 1, 1 deltas"},
	} {
		t.Run(name, func(t *testing.T) {
			var c counts
			want.opts.Progress = &c
			want.opts.Transformer = func(obj any) (any, error) {
				if obj.(*corev1.ConfigMap).ResourceVersion == "refused" {
					return nil, errors.New("refused")
				}
				return obj, nil
			}
			var q Queue
			if name == "DeltaFIFO" {
				q = NewDeltaFIFO(want.opts)
			} else {
				q = NewRealFIFO(want.opts)
			}
			require.NoError(t, q.Add(named("a", "2")))
			require.Equal(t, "queued 1", c.take())
			require.NoError(t, q.Update(named("a", "3")))
			require.Contains(t, []string{"queued 1", "queued 2"}, c.take())
			require.NoError(t, q.Delete(named("unknown", "4")))
			require.Equal(t, want.dropped, c.take())
			for _, call := range []func() error{
				func() error { return q.Add("no object") },
				func() error { return q.Update("no object") },
				func() error { return q.Delete("no object") },
				func() error { return q.Replace([]any{"no object"}, "5") },
				func() error { return q.Add(named("a", "refused")) },
				func() error { return q.Replace([]any{named("a", "refused")}, "5") },
			} {
				require.Error(t, call())
				require.Empty(t, c.take())
			}
			require.NoError(t, q.Replace([]any{named("a", "3"), named("b", "4")}, "5"))
			require.Equal(t, want.list, c.take())
			require.NoError(t, q.Resync())
			require.Empty(t, c.take(), "a resync hands nothing over")
			if real, ok := q.(*RealFIFO); ok {
				require.NoError(t, real.Bookmark("6"))
				require.Equal(t, 1, strings.Count(c.take(), "queued"))
			}
			_, err := q.Pop(func(any, bool) error { return nil })
			require.NoError(t, err)
			require.Equal(t, want.popped, c.take())
		})
	}
}
