// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"example.com/informerstack/compat/cache"
	"example.com/informerstack/internal/tools/storemodel"
)

// The laws of a store with keys that its callers compute.
func TestThreadSafeStore_KeyedLaws(t *testing.T) {
	for name, law := range storemodel.KeyedLaws {
		t.Run(name, func(t *testing.T) {
			plain := cache.NewThreadSafeStore(nil, nil)
			law(t, cache.NewThreadSafeStore(cache.Indexers{"node": nodeOf}, nil), plain)
			require.NoError(t, plain.AddIndexers(nil))
			plain.(cache.ThreadSafeStoreWithTransaction).Transaction()
		})
	}
}

// An index function of a lookup gets the object that the caller passes, also nil.
func TestThreadSafeStore_LookupByAnyObject(t *testing.T) {
	var looked []any
	m := cache.NewThreadSafeStore(cache.Indexers{"any": func(obj any) ([]string, error) {
		looked = append(looked, obj)
		return []string{"same"}, nil
	}}, nil)
	m.Add("k", "stored")
	for _, probe := range []any{nil, "probe"} {
		require.Equal(t, []any{"stored"}, first(m.Index("any", probe)))
	}
	require.Equal(t, []any{"stored", nil, "probe"}, looked)
	_, err := m.Index("none", nil)
	require.EqualError(t, err, "Index with name none does not exist")
}

// GetIndexers returns the caller's own functions, in a copy.
func TestThreadSafeStore_GetIndexers(t *testing.T) {
	mine := cache.Indexers{"node": nodeOf}
	m := cache.NewThreadSafeStore(mine, nil)
	require.NoError(t, m.AddIndexers(cache.Indexers{"tag": tagsOf}))
	require.ErrorContains(t, m.AddIndexers(cache.Indexers{"tag": tagsOf}), "indexer conflict")
	require.Equal(t, []string{"x"}, first(m.GetIndexers()["tag"](parsePod("ns/a tags=x"))))
	clear(m.GetIndexers())
	clear(mine)
	require.Len(t, m.GetIndexers(), 2)
}

// An index function that fails on a stored object panics with client-go's text.
func TestThreadSafeStore_IndexFuncErrorPanics(t *testing.T) {
	m := cache.NewThreadSafeStore(cache.Indexers{"bad": func(any) ([]string, error) {
		return nil, errBroken
	}}, nil)
	want := `unable to calculate an index entry for key "k" on index "bad": broken`
	require.PanicsWithError(t, want, func() { m.Add("k", parsePod("ns/k")) })
	require.Empty(t, m.List())
}

// keyedStore is the part of a ThreadSafeStore that has the same types on both sides.
type keyedStore interface {
	storemodel.Keyed
	Add(key string, obj any)
	Delete(key string)
	Replace(items map[string]any, resourceVersion string)
	Bookmark(resourceVersion string)
}

// keyed is a ThreadSafeStore as a store that computes the keys.
type keyed struct {
	keyedStore
	t *testing.T
}

func (s keyed) Add(obj any) error {
	s.keyedStore.Add(storemodel.Key(obj), obj)
	return nil
}

func (s keyed) Update(obj any) error {
	s.keyedStore.Update(storemodel.Key(obj), obj)
	return nil
}

// Delete deletes with the object, or without, which leaves the version as it is.
func (s keyed) Delete(obj any) error {
	version, key := obj.(*v1.Pod).ResourceVersion, storemodel.Key(obj)
	if strings.HasSuffix(version, "1") {
		before := s.LastStoreSyncResourceVersion()
		s.keyedStore.Delete(key)
		require.Equal(s.t, before, s.LastStoreSyncResourceVersion())
		s.Bookmark(version)
		return nil
	}
	s.DeleteWithObject(key, obj)
	return nil
}

func (s keyed) Replace(list []any, resourceVersion string) error {
	items := map[string]any{}
	for _, obj := range list {
		items[storemodel.Key(obj)] = obj
	}
	s.keyedStore.Replace(items, resourceVersion)
	return nil
}

func (s keyed) GetByKey(key string) (item any, exists bool, err error) {
	item, exists = s.keyedStore.Get(key)
	return item, exists, nil
}

func (s keyed) Get(obj any) (item any, exists bool, err error) {
	return s.GetByKey(storemodel.Key(obj))
}

// Random operations leave our store, client-go's and a searched map with the same content.
func TestModel_ThreadSafeStore(t *testing.T) {
	storemodel.Play(t, 100, 1000, func(t *testing.T) []storemodel.Subject {
		ours := cache.NewThreadSafeStore(storemodel.Indexers[cache.Indexers](storemodel.First), nil)
		theirs := clientgo.NewThreadSafeStore(
			storemodel.Indexers[clientgo.Indexers](storemodel.First), clientgo.Indices{})
		return []storemodel.Subject{{
			Store: keyed{ours, t},
			AddIndexers: func(funcs map[string]storemodel.IndexFunc) error {
				return ours.AddIndexers(storemodel.Indexers[cache.Indexers](funcs))
			},
			Transact: func(changes []storemodel.Change) {
				var txns []cache.ThreadSafeStoreTransaction
				for _, c := range changes {
					txns = append(txns, cache.ThreadSafeStoreTransaction{
						Key: storemodel.Key(c.Pod), Transaction: cache.Transaction{
							Object: c.Pod, Type: cache.TransactionType(c.Type)}})
				}
				ours.(cache.ThreadSafeStoreWithTransaction).Transaction(txns...)
			},
		}, {
			Store: keyed{theirs, t},
			AddIndexers: func(funcs map[string]storemodel.IndexFunc) error {
				return theirs.AddIndexers(storemodel.Indexers[clientgo.Indexers](funcs))
			},
			Transact: func(changes []storemodel.Change) {
				var txns []clientgo.ThreadSafeStoreTransaction
				for _, c := range changes {
					txns = append(txns, clientgo.ThreadSafeStoreTransaction{
						Key: storemodel.Key(c.Pod), Transaction: clientgo.Transaction{
							Object: c.Pod, Type: clientgo.TransactionType(c.Type)}})
				}
				theirs.(clientgo.ThreadSafeStoreWithTransaction).Transaction(txns...)
			},
		}}
	})
}

// A store with a transform is a store of what the transform returns.
func TestModel_TransformingStore(t *testing.T) {
	storemodel.Play(t, 30, 1000, func(*testing.T) []storemodel.Subject {
		s := cache.NewIndexer(cache.MetaNamespaceKeyFunc,
			storemodel.Indexers[cache.Indexers](storemodel.First),
			cache.WithTransformer(func(obj any) (any, error) {
				return obj.(*v1.Pod).DeepCopy(), nil
			}))
		return []storemodel.Subject{{
			Store: s,
			AddIndexers: func(funcs map[string]storemodel.IndexFunc) error {
				return s.AddIndexers(storemodel.Indexers[cache.Indexers](funcs))
			},
			Same: func(t testing.TB, want *v1.Pod, got any) {
				require.True(t, want != got, "the transform has copied it")
				require.Equal(t, want, got)
			},
		}}
	})
}
