// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/store"
)

// allKinds runs a test on each kind of our queues.
func allKinds(t *testing.T, test func(t *testing.T, w *world)) {
	for name, k := range map[string]kind{
		"deltafifo":       {},
		"deltafifo known": {known: true, replaced: true},
		"realfifo":        {real: true, known: true},
		"realfifo atomic": {real: true, atomic: true, unlock: true, bookmarks: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ours, k)
			defer w.bound()()
			test(t, w)
			w.laws(t)
		})
	}
}

// An object without a key is refused by each method, with a KeyError that names it.
func TestBadInput_NoKey(t *testing.T) {
	allKinds(t, func(t *testing.T, w *world) {
		for _, obj := range []any{
			nil, 7, "text", struct{}{}, Deltas{}, Deltas(nil), Deltas{{Added, nil}},
		} {
			for name, call := range map[string]func(any) error{
				"Add": w.queue.Add, "Update": w.queue.Update, "Delete": w.queue.Delete,
				"Replace": func(obj any) error {
					return w.queue.Replace([]any{object("ns/a", "1"), obj}, "1")
				},
			} {
				var keyError store.KeyError
				require.ErrorAs(t, call(obj), &keyError, "%s(%#v)", name, obj)
				require.Equal(t, obj, keyError.Obj)
				w.laws(t)
			}
		}
		w.queue.Close()
		require.Equal(t, "closed", w.pop())
	})
}

// A typed nil has no metadata. The key function may return an error or panic; in both cases the
// queue is unchanged.
func TestBadInput_TypedNil(t *testing.T) {
	allKinds(t, func(t *testing.T, w *world) {
		var obj *metav1.PartialObjectMetadata
		calls := []func(){
			func() { require.Error(t, w.queue.Add(obj)) },
			func() { require.Error(t, w.queue.Delete(obj)) },
			func() { require.Error(t, w.queue.Replace([]any{obj}, "")) },
		}
		for _, call := range calls {
			func() {
				defer func() { recover() }()
				call()
			}()
			w.laws(t)
		}
		require.NoError(t, w.queue.Add(object("ns/a", "1")))
		require.Equal(t, "ns/a: added@1", w.pop()[:len("ns/a: added@1")])
	})
}

// An object that the transformer refuses is not queued, and the queue keeps what it had. A
// DeltaFIFO drops the delete of an object that is neither queued nor known, even if it is refused.
func TestBadInput_TransformerFails(t *testing.T) {
	for name, k := range map[string]kind{
		"deltafifo":       {transform: true},
		"realfifo":        {transform: true, real: true, known: true},
		"realfifo atomic": {transform: true, real: true, atomic: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, ours, k)
			require.NoError(t, w.queue.Add(object("ns/a", "1")))
			w.failing = map[string]bool{"ns/a": true, "ns/b": true}
			for _, key := range []string{"ns/a", "ns/b"} {
				obj := object(key, "7")
				require.ErrorContains(t, w.queue.Add(obj), "transform failed")
				require.ErrorContains(t, w.queue.Update(obj), "transform failed")
				require.ErrorContains(t, w.queue.Replace([]any{obj}, "7"), "transform failed")
				if k.real || key == "ns/a" {
					require.ErrorContains(t, w.queue.Delete(obj), "transform failed")
				} else {
					require.NoError(t, w.queue.Delete(obj))
				}
				w.laws(t)
			}
			w.queue.Close()
			require.Contains(t, w.pop(), "ns/a: added@1t")
			require.Equal(t, "closed", w.pop())
		})
	}
}

func TestBadInput_KeyOf(t *testing.T) {
	f := NewDeltaFIFO(Options{})
	obj := object("ns/a", "1")
	for _, in := range []any{
		obj, Deltas{{Deleted, object("ns/b", "1")}, {Added, obj}}, store.ExplicitKey("ns/a"),
		store.DeletedFinalStateUnknown{Key: "ns/a"},
		Deltas{{Deleted, store.DeletedFinalStateUnknown{Key: "ns/a"}}},
	} {
		key, err := f.KeyOf(in)
		require.NoError(t, err)
		require.Equal(t, "ns/a", key, "%#v", in)
	}
	_, err := f.KeyOf(Deltas{})
	require.ErrorIs(t, err, ErrZeroLengthDeltasObject)
	require.ErrorAs(t, err, &store.KeyError{})
	_, err = f.KeyOf(nil)
	require.Error(t, err)
}

// A process function that panics, or that is nil, costs only its item: the lock is released, and
// the queue syncs.
func TestBadInput_ProcessPanics(t *testing.T) {
	allKinds(t, func(t *testing.T, w *world) {
		require.NoError(t, w.queue.Replace(objects("ns/a@1"), ""))
		require.Panics(t, func() { w.queue.Pop(func(any, bool) error { panic("process") }) })
		w.laws(t)
		require.True(t, w.queue.HasSynced())
		require.NoError(t, w.queue.Add(object("ns/b", "2")))
		require.Panics(t, func() { w.queue.Pop(nil) })
		w.laws(t)
		w.queue.Close()
		require.Equal(t, "closed", w.pop())
	})
}

func TestBadInput_BatchProcessPanics(t *testing.T) {
	w := newWorld(t, ours, kind{real: true, atomic: true, unlock: true})
	for _, key := range []string{"ns/a", "ns/b", "ns/b"} {
		require.NoError(t, w.queue.Add(object(key, "1")))
	}
	w.queue.Close() // a PopBatch of a lost item must not block
	require.Panics(t, func() { w.queue.PopBatch(nil, nil) })
	w.laws(t)
	require.Panics(t, func() { w.queue.PopBatch(nil, nil) })
	w.laws(t)
	require.Equal(t, "closed", w.popBatch())
}

// A key function or a transformer that panics leaves the queue unlocked and unchanged.
func TestBadInput_KeyFunctionOrTransformerPanics(t *testing.T) {
	fails := true
	keyFunc := func(obj any) (string, error) {
		if fails {
			panic("key function")
		}
		return store.MetaNamespaceKeyFunc(obj)
	}
	transform := func(obj any) (any, error) {
		if fails {
			panic("transformer")
		}
		return obj, nil
	}
	for name, f := range map[string]*DeltaFIFO{
		"key function": NewDeltaFIFO(Options{KeyFunction: keyFunc}),
		"transformer":  NewDeltaFIFO(Options{Transformer: transform}),
	} {
		t.Run(name, func(t *testing.T) {
			fails = true
			require.Panics(t, func() { f.Add(object("ns/a", "1")) })
			require.Panics(t, func() { f.Delete(object("ns/a", "1")) })
			require.Panics(t, func() { f.Replace(objects("ns/a@1"), "") })
			f.checkLaws(t)
			fails = false
			require.NoError(t, f.Add(object("ns/a", "1")))
			require.Equal(t, 1, len(f.items))
		})
	}
}

// If a transformer returns nil or another type, the object is queued under the key of the received
// object.
func TestBadInput_TransformToAnotherType(t *testing.T) {
	for _, out := range []any{nil, "text", 7} {
		transform := func(any) (any, error) { return out, nil }
		d := NewDeltaFIFO(Options{Transformer: transform})
		r := NewRealFIFO(Options{AtomicEvents: true, Transformer: transform})
		for _, q := range []Queue{d, r} {
			require.NoError(t, q.Add(object("ns/a", "1")))
			require.NoError(t, q.Replace(objects("ns/a@2"), ""))
			got, err := q.Pop(func(any, bool) error { return nil })
			require.NoError(t, err)
			require.Equal(t, out, got.(Deltas)[0].Object)
		}
		d.checkLaws(t)
		r.checkLaws(t)
	}
}

// After Close all methods work as before, except Pop of an empty queue. A second Close is a no-op.
// A nil list is an empty one.
func TestBadInput_UseAfterClose(t *testing.T) {
	allKinds(t, func(t *testing.T, w *world) {
		w.queue.Close()
		w.queue.Close()
		require.NoError(t, w.queue.Replace(nil, ""))
		w.drain()
		require.True(t, w.queue.HasSynced())
		require.NoError(t, w.queue.Replace(objects("ns/a@1"), ""))
		require.NoError(t, w.queue.Add(object("ns/b", "2")))
		require.NoError(t, w.queue.Resync())
		require.NotEmpty(t, w.drain())
		require.Equal(t, "closed", w.pop())
		require.True(t, w.queue.HasSynced())
	})
}

func TestOldestNewest(t *testing.T) {
	deltas := Deltas{{Added, 1}, {Updated, 2}}
	require.Equal(t, &deltas[0], deltas.Oldest())
	require.Equal(t, &deltas[1], deltas.Newest())
	require.Nil(t, Deltas{}.Oldest())
	require.Nil(t, Deltas(nil).Newest())
}
