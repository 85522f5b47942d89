// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/store"
)

func podAt(name, rv string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: rv},
	}
}

// newDeltaTest returns a processor for s that notifies a recorder. The recorder checks law D2: the
// store is never behind.
func newDeltaTest(t *testing.T, s store.Store) (*deltaProcessor, *recorder) {
	r := newRecorder()
	emit := func(changes []change) {
		for _, c := range changes {
			if c.kind != deleted {
				stored, exists, err := s.Get(c.newObj)
				require.NoError(t, err)
				assert.True(t, exists)
				assert.Same(t, c.newObj, stored)
			}
			c.deliver(r)
		}
	}
	return &deltaProcessor{
		mu: &sync.Mutex{}, store: s, stored: func(int) {}, emit: emit,
	}, r
}

func update(oldObj, newObj any) change {
	return change{kind: updated, oldObj: oldObj, newObj: newObj}
}

func newTestStore() store.Store { return newTestIndexer() }

func newTestIndexer() store.Indexer {
	return store.New(store.DeletionHandlingMetaNamespaceKeyFunc, store.Options{})
}

// The store decides whether a change is an add or an update, not the delta's type.
func TestProcess_StoreDecides(t *testing.T) {
	for _, deltaType := range []deltafifo.DeltaType{
		deltafifo.Added, deltafifo.Updated, deltafifo.Replaced, deltafifo.Sync,
	} {
		p, r := newDeltaTest(t, newTestStore())
		require.NoError(t, p.process(deltafifo.Deltas{
			{Type: deltaType, Object: podAt("a", "1")},
			{Type: deltaType, Object: podAt("a", "2")},
		}, true))
		assert.Equal(t, []string{"initial a", "update a"}, r.take(), deltaType)
	}
}

// A delete is emitted although the store does not hold the object.
func TestProcess_Deleted(t *testing.T) {
	p, r := newDeltaTest(t, newTestStore())
	require.NoError(t, p.process(deltafifo.Deltas{
		{Type: deltafifo.Added, Object: podAt("a", "1")},
		{Type: deltafifo.Deleted, Object: store.DeletedFinalStateUnknown{Key: "ns/a"}},
		{Type: deltafifo.Deleted, Object: podAt("a", "1")},
	}, false))
	assert.Equal(t, []string{"add a", "tombstone a", "delete a"}, r.take())
	assert.Empty(t, p.store.List())
}

// An object that a list contains twice, because pages overlap, is emitted once, as it is stored.
func TestProcess_AnObjectTwiceInAList(t *testing.T) {
	p, r := newDeltaTest(t, newTestStore())
	require.NoError(t, p.store.Add(podAt("old", "1")))
	list := deltafifo.ReplacedAllInfo{ResourceVersion: "9", Objects: []any{
		podAt("new", "2"), podAt("old", "3"), podAt("new", "4"), podAt("old", "5"),
	}}
	require.NoError(t, p.process(deltafifo.Deltas{
		{Type: deltafifo.ReplacedAll, Object: list},
	}, true))
	assert.Equal(t, []string{"initial new", "update old"}, r.take())
}

// A whole list emits the deletes first, then the objects in list order.
func TestProcess_ReplacedAll(t *testing.T) {
	p, r := newDeltaTest(t, newTestStore())
	require.NoError(t, p.store.Add(podAt("gone", "1")))
	require.NoError(t, p.store.Add(podAt("same", "2")))
	list := deltafifo.ReplacedAllInfo{
		ResourceVersion: "9", Objects: []any{podAt("new", "3"), podAt("same", "2")},
	}
	require.NoError(t, p.process(deltafifo.Deltas{
		{Type: deltafifo.ReplacedAll, Object: list},
	}, true))
	assert.Equal(t, []string{"tombstone gone", "initial new", "unchanged same"}, r.take())
	assert.Equal(t, "9", p.store.LastStoreSyncResourceVersion())

	require.NoError(t, p.process(deltafifo.Deltas{
		{Type: deltafifo.SyncAll, Object: deltafifo.SyncAllInfo{}},
	}, false))
	assert.Equal(t, []string{"resync new", "resync same"}, r.take())
	require.NoError(t, p.process(deltafifo.Deltas{
		{Type: deltafifo.Bookmark, Object: deltafifo.BookmarkInfo{ResourceVersion: "12"}},
	}, false))
	assert.Equal(t, "12", p.store.LastStoreSyncResourceVersion())
	assert.Empty(t, r.take())
}

// An invalid delta is an error and changes nothing.
func TestProcess_BadInput(t *testing.T) {
	for name, process := range map[string]func(p *deltaProcessor) error{
		"not Deltas": func(p *deltaProcessor) error {
			return p.process(podAt("a", "1"), false)
		},
		"unknown type":            one("Moved", podAt("a", "1")),
		"nil object":              one(deltafifo.Added, nil),
		"typed nil":               one(deltafifo.Added, (*corev1.Pod)(nil)),
		"object without metadata": one(deltafifo.Updated, "a string"),
		"delete without metadata": one(deltafifo.Deleted, "a string"),
		"ReplacedAll of nothing":  one(deltafifo.ReplacedAll, nil),
		"ReplacedAll with a hole": one(deltafifo.ReplacedAll,
			deltafifo.ReplacedAllInfo{Objects: []any{podAt("a", "1"), nil}}),
		"Bookmark of nothing": one(deltafifo.Bookmark, nil),
		"Bookmark in a batch": func(p *deltaProcessor) error {
			return p.processBatch([]deltafifo.Delta{
				{Type: deltafifo.Added, Object: podAt("a", "1")}, {Type: deltafifo.Bookmark},
			}, false)
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, r := newDeltaTest(t, newTestStore())
			require.NoError(t, p.store.Add(podAt("there", "1")))
			require.Error(t, process(p))
			assert.Empty(t, r.take())
			assert.Equal(t, []string{"ns/there"}, p.store.ListKeys())
		})
	}
}

func one(deltaType deltafifo.DeltaType, obj any) func(*deltaProcessor) error {
	return func(p *deltaProcessor) error {
		return p.process(deltafifo.Deltas{{Type: deltaType, Object: obj}}, false)
	}
}

func someDeltas() []deltafifo.Delta {
	return []deltafifo.Delta{
		{Type: deltafifo.Added, Object: podAt("a", "2")},
		{Type: deltafifo.Added, Object: "no key"},
		{Type: deltafifo.Updated, Object: podAt("b", "3")},
		{Type: deltafifo.Deleted, Object: podAt("c", "4")},
	}
}

// If a part of a batch fails, the changes of the other deltas are emitted.
func TestProcess_BatchWithABrokenItem(t *testing.T) {
	p, r := newDeltaTest(t, newTestStore())
	require.NoError(t, p.store.Add(podAt("a", "1")))
	require.NoError(t, p.store.Add(podAt("c", "1")))
	err := p.processBatch(someDeltas(), false)
	var failed *store.TransactionError
	require.ErrorAs(t, err, &failed)
	assert.Equal(t, []int{0, 2, 3}, failed.SuccessfulIndices)
	assert.Equal(t, []string{"update a", "add b", "delete c"}, r.take())

	broken := deltafifo.Delta{Type: deltafifo.Added, Object: "no key"}
	err = p.processBatch([]deltafifo.Delta{broken, broken}, true)
	require.ErrorAs(t, err, &failed)
	assert.Empty(t, failed.SuccessfulIndices)
	assert.Empty(t, r.take())
	assert.ElementsMatch(t, []string{"ns/a", "ns/b"}, p.store.ListKeys())
}

// A batch is stored as a whole before its first change is emitted. Without transactions, deltas are
// stored and emitted one by one.
func TestProcess_BatchIsStoredFirst(t *testing.T) {
	deltas := []deltafifo.Delta{
		{Type: deltafifo.Added, Object: podAt("a", "1")},
		{Type: deltafifo.Added, Object: podAt("b", "2")},
	}
	for name, tc := range map[string]struct {
		store store.Store
		want  int
	}{
		"with transactions":    {newTestStore(), 2},
		"without transactions": {plainStore{newTestStore()}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := &deltaProcessor{mu: &sync.Mutex{}, store: tc.store, stored: func(int) {}}
			stored := 0
			p.emit = func([]change) {
				if stored == 0 {
					stored = len(tc.store.ListKeys())
				}
			}
			require.NoError(t, p.processBatch(deltas, false))
			assert.Equal(t, tc.want, stored)
			require.Error(t, p.processBatch(someDeltas(), false))
			assert.ElementsMatch(t, []string{"ns/a", "ns/b"}, tc.store.ListKeys())
		})
	}
}

// A list and a batch of any length reach handlers as a whole, in order, in pieces of at most
// batchLen.
func TestProcess_LargeBatches(t *testing.T) {
	for _, n := range []int{batchLen - 1, batchLen, batchLen + 1, 3*batchLen + 1} {
		var emitted []string
		p := &deltaProcessor{
			mu: &sync.Mutex{}, store: newTestStore(), stored: func(int) {},
			emit: func(changes []change) {
				require.LessOrEqual(t, len(changes), batchLen)
				for _, c := range changes {
					emitted = append(emitted, c.newObj.(*corev1.Pod).Name)
				}
			},
		}
		var want []string
		var list []any
		var deltas []deltafifo.Delta
		for i := range n {
			name := fmt.Sprintf("%03d", i)
			want, list = append(want, name), append(list, podAt(name, "1"))
			deltas = append(deltas, deltafifo.Delta{
				Type: deltafifo.Updated, Object: podAt(name, "2")})
		}
		info := deltafifo.ReplacedAllInfo{ResourceVersion: "9", Objects: list}
		require.NoError(t, p.process(deltafifo.Deltas{
			{Type: deltafifo.ReplacedAll, Object: info}}, true))
		require.Equal(t, want, emitted)
		emitted = nil
		if n > 1 {
			require.NoError(t, p.processBatch(deltas, false))
			require.Equal(t, want, emitted)
		}
		require.Len(t, p.store.ListKeys(), n)
	}
}

// plainStore has no transactions.
type plainStore struct{ store.Store }

// If one of an object's deltas fails, the later ones are stored and emitted. The processor does not
// report that all is stored.
func TestProcess_AFailureDoesNotAffectOthers(t *testing.T) {
	p, r := newDeltaTest(t, hooked{newTestIndexer(), refuseFirst()})
	p.stored = func(int) { t.Error("not all is stored") }
	require.ErrorContains(t, p.process(deltafifo.Deltas{
		{Type: deltafifo.Added, Object: podAt("a", "1")},
		{Type: deltafifo.Updated, Object: podAt("a", "2")},
	}, false), "refused")
	assert.Equal(t, []string{"add a"}, r.take())
}

// An error of the store is returned, and no change is emitted for it.
func TestProcess_FailingStore(t *testing.T) {
	full := errors.New("full")
	p, r := newDeltaTest(t, hooked{newTestIndexer(), func() error { return full }})
	for _, d := range []deltafifo.Delta{
		{Type: deltafifo.Added, Object: podAt("a", "1")},
		{Type: deltafifo.ReplacedAll,
			Object: deltafifo.ReplacedAllInfo{Objects: []any{podAt("a", "1")}}},
	} {
		require.ErrorIs(t, p.process(deltafifo.Deltas{d}, true), full)
	}
	assert.Empty(t, r.take())
}
