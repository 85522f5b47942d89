// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/store"
)

// versionedQueue is the part of both queues that these tests use.
type versionedQueue interface {
	Queue
	Received(resourceVersion string, asOf time.Time)
	checkLaws(t testing.TB)
}

// eachVersionedQueue runs test on both queues. reached returns the newest reported version.
func eachVersionedQueue(
	t *testing.T, test func(t *testing.T, q versionedQueue, reached func() string),
) {
	newest := ""
	report := func(resourceVersion string, _ time.Time) { newest = resourceVersion }
	for name, q := range map[string]versionedQueue{
		"DeltaFIFO": NewDeltaFIFO(Options{
			KnownObjects: store.New(store.MetaNamespaceKeyFunc, store.Options{}), Reached: report,
		}),
		"RealFIFO": NewRealFIFO(Options{
			AtomicEvents: true, UnlockWhileProcessing: true, Reached: report,
		}),
	} {
		t.Run(name, func(t *testing.T) {
			newest = ""
			test(t, q, func() string { q.checkLaws(t); return newest })
		})
	}
}

func named(name, resourceVersion string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: resourceVersion},
	}
}

func popAll(t *testing.T, q Queue, result error) {
	t.Helper()
	q.Close()
	for {
		_, err := q.Pop(func(any, bool) error { return result })
		if errors.Is(err, ErrFIFOClosed) {
			return
		}
		require.Equal(t, result, err)
	}
}

func popOne(t *testing.T, q Queue, result error) {
	t.Helper()
	q.Close() // a Pop of a lost item must not block
	_, err := q.Pop(func(any, bool) error { return result })
	require.Equal(t, result, err)
}

// The resourceVersion of a list is that of the LIST, and it is reported when the whole list is
// processed. The versions of its objects are not reported: the newest object may come first.
func TestReached_ListAfterItsLastObject(t *testing.T) {
	eachVersionedQueue(t, func(t *testing.T, q versionedQueue, reached func() string) {
		require.NoError(t, q.Replace([]any{named("a", "60"), named("b", "20")}, "100"))
		q.Received("100", time.Now())
		assert.Empty(t, reached())
		popAll(t, q, nil)
		assert.Equal(t, "100", reached())
	})
}

// When HasSynced is true, the version of the first list is reached, even if the next list has come
// before the first one was processed.
func TestReached_FirstListBehindWhichAnotherWaits(t *testing.T) {
	eachVersionedQueue(t, func(t *testing.T, q versionedQueue, reached func() string) {
		require.NoError(t, q.Replace([]any{named("a", "60"), named("b", "20")}, "100"))
		q.Received("100", time.Now())
		require.NoError(t, q.Replace([]any{named("a", "60"), named("c", "120")}, "200"))
		q.Received("200", time.Now())
		for !q.HasSynced() {
			popOne(t, q, nil)
		}
		assert.Equal(t, "100", reached())
		popAll(t, q, nil)
		assert.Equal(t, "200", reached())
	})
}

// A change is reached when it and all changes before it are processed. A DeltaFIFO pops a@3 before
// b@2; then 3 is not reached.
func TestReached_EveryChangeUpToIt(t *testing.T) {
	eachVersionedQueue(t, func(t *testing.T, q versionedQueue, reached func() string) {
		require.NoError(t, q.Replace(nil, "0x"))
		q.Received("1", time.Now())
		popAll(t, q, nil)
		for _, obj := range []*corev1.ConfigMap{named("a", "2"), named("b", "3"), named("a", "4")} {
			require.NoError(t, q.Update(obj))
			q.Received(obj.ResourceVersion, time.Now())
		}
		assert.Equal(t, "1", reached())
		popOne(t, q, nil)
		assert.NotEqual(t, "4", reached())
		popAll(t, q, nil)
		assert.Equal(t, "4", reached())
	})
}

// A bookmark is reached when the items before it are processed; at once if the queue is empty.
func TestReached_Bookmark(t *testing.T) {
	eachVersionedQueue(t, func(t *testing.T, q versionedQueue, reached func() string) {
		require.NoError(t, q.Replace([]any{named("a", "1")}, "5"))
		q.Received("5", time.Now())
		q.Received("6", time.Now())
		assert.Empty(t, reached())
		popAll(t, q, nil)
		assert.Equal(t, "6", reached())
		q.Received("7", time.Now())
		assert.Equal(t, "7", reached())
	})
}

// A list, and then each change, is reached when its processing ends, even before Received is
// called: a handler that reacts to the change finds it reached.
func TestReached_ByTheChangeItself(t *testing.T) {
	eachVersionedQueue(t, func(t *testing.T, q versionedQueue, reached func() string) {
		require.NoError(t, q.Add(named("z", "4"))) // its order is not known
		popAll(t, q, nil)
		assert.Empty(t, reached())
		require.NoError(t, q.Replace([]any{named("a", "1")}, "5"))
		assert.Empty(t, reached())
		popAll(t, q, nil)
		assert.Equal(t, "5", reached())
		require.NoError(t, q.Add(named("z", "9")))
		popAll(t, q, nil)
		assert.Equal(t, "9", reached())
		require.NoError(t, q.Add(named("b", "10")))
		popAll(t, q, nil)
		assert.Equal(t, "10", reached())
		require.NoError(t, q.Add(named("c", ""))) // no version is known to be reached
		popAll(t, q, nil)
		assert.Equal(t, "10", reached())
	})
}

// An item that is being processed is not yet processed.
func TestReached_NotWhileProcessing(t *testing.T) {
	versions := []string{}
	q := NewRealFIFO(Options{
		AtomicEvents: true, UnlockWhileProcessing: true,
		Reached: func(version string, _ time.Time) { versions = append(versions, version) },
	})
	require.NoError(t, q.Add(named("a", "1")))
	require.NoError(t, q.Add(named("b", "2")))
	q.Received("2", time.Now())
	require.NoError(t, q.PopBatch(func(deltas []Delta, _ bool) error {
		require.Len(t, deltas, 2)
		q.Received("3", time.Now())
		q.checkLaws(t)
		assert.Empty(t, versions)
		return nil
	}, nil))
	assert.Equal(t, []string{"3"}, versions)
}

// After a failure no version is reached until a list has repaired the loss.
func TestReached_NotPastAFailure(t *testing.T) {
	for name, fail := range map[string]func(t *testing.T, q Queue){
		"error": func(t *testing.T, q Queue) { popOne(t, q, errors.New("refused")) },
		"panic": func(t *testing.T, q Queue) {
			assert.Panics(t, func() { _, _ = q.Pop(func(any, bool) error { panic("broken") }) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			eachVersionedQueue(t, func(t *testing.T, q versionedQueue, reached func() string) {
				require.NoError(t, q.Replace(nil, "1"))
				q.Received("1", time.Now())
				popAll(t, q, nil)
				require.NoError(t, q.Add(named("a", "2")))
				require.NoError(t, q.Add(named("b", "3")))
				q.Received("3", time.Now())
				fail(t, q)
				popAll(t, q, nil)
				q.Received("4", time.Now())
				assert.Equal(t, "1", reached())

				require.NoError(t, q.Replace([]any{named("a", "2")}, "5"))
				q.Received("5", time.Now())
				assert.Equal(t, "1", reached())
				popAll(t, q, nil)
				assert.Equal(t, "5", reached())
			})
		})
	}
}

// A list that waits when a change fails repairs that, unless the change and a part of the list are
// one item, as in a DeltaFIFO: then another list must come.
func TestReached_ListThatWaitsBehindAFailure(t *testing.T) {
	eachVersionedQueue(t, func(t *testing.T, q versionedQueue, reached func() string) {
		_, merges := q.(*DeltaFIFO)
		want := func(version string) {
			t.Helper()
			if merges {
				version = "1"
			}
			assert.Equal(t, version, reached())
		}
		require.NoError(t, q.Replace(nil, "1"))
		q.Received("1", time.Now())
		popAll(t, q, nil)
		require.NoError(t, q.Add(named("a", "2")))
		q.Received("2", time.Now())
		require.NoError(t, q.Replace([]any{named("b", "3")}, "4"))
		q.Received("4", time.Now())
		require.NoError(t, q.Add(named("c", "5")))
		popOne(t, q, errors.New("refused"))
		q.Received("6", time.Now())
		assert.Equal(t, "1", reached())
		popOne(t, q, nil)
		want("4")
		popAll(t, q, nil)
		want("6")
		q.Received("7", time.Now())
		want("7")

		require.NoError(t, q.Replace(nil, "8"))
		popAll(t, q, nil)
		assert.Equal(t, "8", reached())
	})
}

// With random operations and failures, a reported version means that every change up to it has been
// applied.
func TestReached_MeansWhatItSays(t *testing.T) {
	smallLimits(t)
	const keys = 5
	for seed := range uint64(90) {
		random := rand.New(rand.NewPCG(seed, 0))
		version := 0
		last := [][keys]int{{}} // last[v][k]: the version of key k's last change up to v
		applied := [keys]int{}
		report := func(resourceVersion string, _ time.Time) {
			v, err := strconv.Atoi(resourceVersion)
			require.NoError(t, err)
			for k := range keys {
				require.GreaterOrEqual(t, applied[k], last[v][k], "seed %d: key %d at version %d",
					seed, k, v)
			}
		}
		var q versionedQueue = NewDeltaFIFO(Options{Reached: report})
		switch seed % 3 {
		case 1:
			known := &knownObjects{objs: map[string]any{}}
			q = NewRealFIFO(Options{KnownObjects: known, Reached: report})
		case 2:
			q = NewRealFIFO(Options{
				AtomicEvents: true, UnlockWhileProcessing: true, Reached: report,
			})
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
			require.NoError(t, q.Update(named(string(rune('a'+k)), strconv.Itoa(version))))
			q.Received(strconv.Itoa(version), time.Now())
		}
		relist := func() {
			var list []any
			for k, v := range last[version] {
				list = append(list, named(string(rune('a'+k)), strconv.Itoa(v)))
			}
			require.NoError(t, q.Replace(list, strconv.Itoa(version)))
			if random.IntN(2) == 0 {
				q.Received(strconv.Itoa(version), time.Now())
			}
		}
		process := func(obj any, _ bool) error {
			real, isReal := q.(*RealFIFO)
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
			if random.IntN(2) == 0 {
				q.(interface{ Stored() }).Stored()
			}
			return nil
		}
		processBatch := func(deltas []Delta, initial bool) error {
			return process(Deltas(deltas), initial)
		}
		waiting := func() int { // popping an empty queue would block
			if d, ok := q.(*DeltaFIFO); ok {
				return len(d.queue)
			}
			return len(q.(*RealFIFO).items)
		}
		for range 200 {
			switch op := random.IntN(10); {
			case op < 4:
				change()
			case op == 4:
				version++
				last = append(last, last[version-1])
				q.Received(strconv.Itoa(version), time.Now())
			case op == 5:
				relist()
			case waiting() > 0:
				if real, ok := q.(*RealFIFO); ok && random.IntN(2) == 0 {
					_ = real.PopBatch(processBatch, process)
				} else {
					_, _ = q.Pop(process)
				}
			}
			q.checkLaws(t)
		}
	}
}

// A delete is reached like any other change.
func TestReached_ByADelete(t *testing.T) {
	eachVersionedQueue(t, func(t *testing.T, q versionedQueue, reached func() string) {
		require.NoError(t, q.Replace(nil, "5"))
		require.NoError(t, q.Add(named("a", "6")))
		require.NoError(t, q.Delete(named("a", "7")))
		popAll(t, q, nil)
		assert.Equal(t, "7", reached())
	})
}

// A version is reached at the call of Stored: the handlers that the consumer notifies afterwards
// find it reached. It is reported once.
func TestReached_ByStored(t *testing.T) {
	for name, opts := range map[string]Options{
		"DeltaFIFO": {}, "RealFIFO": {AtomicEvents: true},
		"RealFIFO unlocked": {AtomicEvents: true, UnlockWhileProcessing: true},
	} {
		t.Run(name, func(t *testing.T) {
			var versions []string
			opts.Reached = func(version string, _ time.Time) {
				versions = append(versions, version)
			}
			type queue interface {
				Queue
				Stored()
			}
			var q queue = NewDeltaFIFO(opts)
			if opts.AtomicEvents {
				q = NewRealFIFO(opts)
			}
			q.Close() // a Pop of a lost item must not block
			pop := func(want ...string) {
				t.Helper()
				_, err := q.Pop(func(any, bool) error {
					require.Empty(t, versions, "before the deltas are applied")
					q.Stored()
					require.Equal(t, want, versions, "in the process function")
					return nil
				})
				require.NoError(t, err)
				require.Equal(t, want, versions, "after it")
				versions = nil
			}
			require.NoError(t, q.Replace([]any{named("a", "3")}, "5"))
			pop("5")
			require.NoError(t, q.Add(named("b", "6")))
			require.NoError(t, q.Delete(named("b", "7")))
			if opts.AtomicEvents {
				pop("6")
			}
			pop("7")
		})
	}
}

// The versions of changes after a list at version "0" or without a version say nothing of others:
// such a list comes from a cache, or from a server without versions. They are not reported.
func TestReached_NotAfterAListWithoutAVersion(t *testing.T) {
	for _, version := range []string{"0", ""} {
		eachVersionedQueue(t, func(t *testing.T, q versionedQueue, reached func() string) {
			require.NoError(t, q.Replace([]any{named("a", "3")}, version))
			popAll(t, q, nil)
			require.NoError(t, q.Update(named("a", "8")))
			require.NoError(t, q.Add(named("b", "7")))
			require.NoError(t, q.Delete(named("b", "9")))
			popAll(t, q, nil)
			assert.Equal(t, version, reached())

			require.NoError(t, q.Replace([]any{named("a", "8")}, "10"))
			require.NoError(t, q.Update(named("a", "11")))
			popAll(t, q, nil)
			assert.Equal(t, "11", reached())
		})
	}
}

// Reached gets the time that Received was called with. The time of a list that Received has not
// confirmed is not known.
func TestReached_WithItsTime(t *testing.T) {
	type report struct {
		version string
		asOf    time.Time
	}
	var got []report
	reached := func(version string, asOf time.Time) { got = append(got, report{version, asOf}) }
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, q := range []versionedQueue{
		NewDeltaFIFO(Options{Reached: reached}),
		NewRealFIFO(Options{AtomicEvents: true, Reached: reached}),
	} {
		got = nil
		require.NoError(t, q.Replace(nil, "5"))
		popAll(t, q, nil)
		q.Received("6", at)
		require.NoError(t, q.Add(named("a", "7")))
		q.Received("8", at.Add(time.Second))
		popAll(t, q, nil)
		assert.Equal(t, []report{{"5", time.Time{}}, {"6", at}, {"8", at.Add(time.Second)}}, got)
	}
}
