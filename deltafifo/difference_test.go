// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/store"
)

// differ runs a test on both implementations. Each has its own expected value.
func differ[T any](
	t *testing.T, k kind, inOurs, inClientGo T, test func(t *testing.T, w *world, want T),
) {
	for impl, want := range map[string]T{ours: inOurs, clientGo: inClientGo} {
		t.Run("impl="+impl, func(t *testing.T) {
			w := newWorld(t, impl, k)
			defer w.bound()()
			test(t, w, want)
			w.laws(t)
		})
	}
}

// A Replace that fails leaves the queue unchanged. In client-go it has queued the objects before
// the bad one, and either all of the deletes or no delete.
func TestDifference_FailedReplaceQueuesNothing(t *testing.T) {
	fail := func(t *testing.T, w *world, want []string) {
		w.known.set(object("ns/c", "1"))
		w.failing["ns/b"] = true
		require.Error(t, w.queue.Replace(objects("ns/a@1", "ns/b@2"), ""))
		w.queue.Close()
		require.Equal(t, want, w.drain())
	}
	t.Run("deltafifo", func(t *testing.T) {
		differ(t, kind{known: true, replaced: true, transform: true}, nil,
			[]string{"ns/a: replaced@1t (first list)"}, fail)
	})
	t.Run("realfifo", func(t *testing.T) {
		differ(t, kind{real: true, known: true, transform: true}, nil,
			[]string{
				"ns/c: deleted(tombstone ns/c@1) (first list)", "ns/a: replaced@1t (first list)",
			}, fail)
	})
}

// Done closes when the first list is processed. In client-go's DeltaFIFO it closes before the last
// process function runs, so that a waiter may miss the last object.
func TestDifference_DoneClosesAfterProcess(t *testing.T) {
	differ(t, kind{replaced: true}, false, true, func(t *testing.T, w *world, early bool) {
		done := w.queue.HasSyncedChecker().Done()
		w.do(op("replace", "ns/a@1"))
		_, err := w.queue.Pop(func(any, bool) error {
			select {
			case <-done:
				require.True(t, early)
			default:
				require.False(t, early)
			}
			return nil
		})
		require.NoError(t, err)
		<-done
	})
}

// HasSynced and IsClosed never wait, not even for a process function. In client-go they take the
// queue's lock: this would deadlock.
func TestDifference_HasSyncedDoesNotWait(t *testing.T) {
	w := newWorld(t, ours, kind{replaced: true})
	w.do(op("replace", "ns/a@1"))
	_, err := w.queue.Pop(func(any, bool) error {
		require.False(t, w.queue.HasSynced())
		require.False(t, w.queue.(interface{ IsClosed() bool }).IsClosed())
		return nil
	})
	require.NoError(t, err)
	require.True(t, w.queue.HasSynced())
}

// An item that was popped before the first list arrived does not count as part of the first list.
func TestDifference_ResyncInFlightIsNotTheFirstList(t *testing.T) {
	differ(t, kind{real: true, atomic: true, unlock: true}, false, true,
		func(t *testing.T, w *world, early bool) {
			w.do(op("resync"))
			_, err := w.queue.Pop(func(any, bool) error {
				return w.queue.Replace(objects("ns/a@1"), "1")
			})
			require.NoError(t, err)
			require.Equal(t, early, w.queue.HasSynced())
			w.pop()
			require.True(t, w.queue.HasSynced())
		})
}

// An atomic Replace of an object without a key fails, so that the reflector lists again. In
// client-go it is queued, and the consumer fails on it and loses the whole list.
func TestDifference_AtomicReplaceChecksKeys(t *testing.T) {
	differ(t, kind{real: true, atomic: true}, "error: no key", "",
		func(t *testing.T, w *world, want string) {
			require.Equal(t, want, describeError(w.queue.Replace(objects("ns/a@1", "keyless"), "")))
		})
}

// The object of a tombstone comes from a cache, so it is not transformed again, also in an atomic
// Replace.
func TestDifference_AtomicReplaceLeavesTombstones(t *testing.T) {
	var got []any
	spy := func(obj any) (any, error) {
		got = append(got, obj)
		return obj, nil
	}
	f := NewRealFIFO(Options{AtomicEvents: true, Transformer: spy})
	require.NoError(t,
		f.Replace([]any{store.DeletedFinalStateUnknown{Key: "ns/a", Obj: object("ns/a", "1")}}, ""))
	require.Empty(t, got)

	theirs := cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{
		AtomicEvents: true, Transformer: spy,
	})
	require.NoError(t, theirs.Replace([]any{
		cache.DeletedFinalStateUnknown{Key: "ns/a", Obj: object("ns/a", "1")},
	}, ""))
	require.Len(t, got, 1)
}

// If the transformer removes the key of an object, the object keeps the key of the received one. In
// client-go it makes every Replace and Resync fail until it is popped.
func TestDifference_LostKeyFailsNoReplace(t *testing.T) {
	differ(t, kind{real: true, known: true, transform: true}, "", "error: no key",
		func(t *testing.T, w *world, want string) {
			w.losing["ns/a"] = true
			require.NoError(t, w.queue.Add(object("ns/a", "1")))
			require.Equal(t, want, describeError(w.queue.Replace(objects("ns/b@2"), "")))
			require.Equal(t, want, describeError(w.queue.Resync()))
		})
}

// A known object without a key does not prevent the replay of the others.
func TestDifference_ResyncGoesOnAfterAnError(t *testing.T) {
	differ(t, kind{known: true}, []string{"ns/b: sync@2 (first list)"}, nil,
		func(t *testing.T, w *world, want []string) {
			w.known.objs["ns/a"] = "keyless"
			w.known.set(object("ns/b", "2"))
			require.Equal(t, "error: no key", describeError(w.queue.Resync()))
			w.queue.Close()
			require.Equal(t, want, w.drain())
		})
}

// For a queued tombstone, a relist queues a tombstone of its object, not of the tombstone. Both
// queues do.
func TestDifference_RealFIFOUnwrapsTombstones(t *testing.T) {
	differ(t, kind{real: true, known: true}, false, true,
		func(t *testing.T, w *world, nested bool) {
			require.NoError(t, w.queue.Update(store.DeletedFinalStateUnknown{
				Key: "ns/a", Obj: object("ns/a", "1"),
			}))
			require.NoError(t, w.queue.Replace(nil, ""))
			w.pop()
			_, err := w.queue.Pop(func(obj any, _ bool) error {
				outer := obj.(Deltas)[0].Object.(store.DeletedFinalStateUnknown)
				_, isTombstone := outer.Obj.(store.DeletedFinalStateUnknown)
				require.Equal(t, nested, isTombstone)
				return nil
			})
			require.NoError(t, err)
		})
}

// A transformer runs without the queue's lock, so callers of other methods do not wait for it. In
// client-go IsClosed would deadlock here.
func TestDifference_TransformerRunsUnlocked(t *testing.T) {
	var f *DeltaFIFO
	f = NewDeltaFIFO(Options{Transformer: func(obj any) (any, error) {
		require.False(t, f.IsClosed())
		return obj, nil
	}})
	require.NoError(t, f.Add(object("ns/a", "1")))
	require.NoError(t, f.Replace(objects("ns/b@1"), ""))
}

// errors.Is finds the transformer's error, also after a Replace.
func TestDifference_TransformErrorIsWrapped(t *testing.T) {
	failure := errors.New("transform failed")
	f := NewDeltaFIFO(Options{Transformer: func(any) (any, error) { return nil, failure }})
	require.ErrorIs(t, f.Add(object("ns/a", "1")), failure)
	require.ErrorIs(t, f.Replace(objects("ns/a@1"), ""), failure)
	require.ErrorContains(t, f.Replace(objects("ns/a@1"), ""), `"ns/a"`)
}

// Options that contradict each other panic on both, with different texts.
func TestDifference_ContradictingOptionsPanic(t *testing.T) {
	known := &knownObjects{}
	for _, tc := range []struct {
		opts         Options
		ours, theirs string
	}{
		{
			Options{}, "Options.KnownObjects is required without AtomicEvents",
			"knownObjects must be provided when AtomicEvents is false",
		},
		{
			Options{AtomicEvents: true, KnownObjects: known},
			"Options.KnownObjects must be nil with AtomicEvents",
			"knownObjects must not be provided when AtomicEvents is true",
		},
		{
			Options{KnownObjects: known, UnlockWhileProcessing: true},
			"Options.UnlockWhileProcessing needs AtomicEvents",
			"UnlockWhileProcessing must be false when AtomicEvents is false",
		},
		{
			Options{KnownObjects: known, EmitDeltaTypeBookmark: true},
			"Options.EmitDeltaTypeBookmark needs AtomicEvents",
			"EmitDeltaTypeBookmark must be false when AtomicEvents is false",
		},
	} {
		require.PanicsWithValue(t, "deltafifo: "+tc.ours, func() { NewRealFIFO(tc.opts) })
		theirs := cache.RealFIFOOptions{
			AtomicEvents:          tc.opts.AtomicEvents,
			UnlockWhileProcessing: tc.opts.UnlockWhileProcessing,
			EmitDeltaTypeBookmark: tc.opts.EmitDeltaTypeBookmark,
		}
		if tc.opts.KnownObjects != nil {
			theirs.KnownObjects = known
		}
		require.PanicsWithValue(t, "coding error: "+tc.theirs,
			func() { cache.NewRealFIFOWithOptions(theirs) })
	}
}
