// SPDX-License-Identifier: Apache-2.0

package adapt_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/compat/adapt"
	"example.com/informerstack/internal/tools/storemodel"
	"example.com/informerstack/store"
)

func TestIndexers_OfARunningInformer(t *testing.T) {
	each(t, func(t *testing.T, create constructor) {
		i := create(newSource(t, pod("a", "n1"), pod("b", "n1"), pod("c", "n2")), &corev1.Pod{}, 0,
			cache.Indexers{"node": byNode})
		defer run(t, i)()
		synctest.Wait()
		require.NoError(t, i.AddIndexers(cache.Indexers{"name": byName}))
		require.NoError(t, i.GetIndexer().
			AddIndexers(cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}))
		require.ErrorContains(t, i.AddIndexers(cache.Indexers{"node": byNode}), "indexer conflict")

		indexer := i.GetIndexer()
		require.Len(t, indexer.GetIndexers(), 3)
		values, err := indexer.GetIndexers()["node"](pod("z", "n9"))
		require.NoError(t, err)
		require.Equal(t, []string{"n9"}, values)
		onNode, err := indexer.ByIndex("node", "n1")
		require.NoError(t, err)
		require.Len(t, onNode, 2)
		like, err := indexer.Index("node", pod("z", "n2"))
		require.NoError(t, err)
		require.Len(t, like, 1)
		keys, err := indexer.IndexKeys("name", "b")
		require.NoError(t, err)
		require.Equal(t, []string{"ns/b"}, keys)
		require.ElementsMatch(t, []string{"n1", "n2"}, indexer.ListIndexFuncValues("node"))
		_, err = indexer.ByIndex("none", "n1")
		require.ErrorContains(t, err, "does not exist")
	})
}

// An informer's store is its indexer, and finds by an object, a key, or a tombstone.
func TestStore_OfAnInformer(t *testing.T) {
	each(t, func(t *testing.T, create constructor) {
		i := create(newSource(t, pod("a", "n1")), &corev1.Pod{}, 0, cache.Indexers{})
		defer run(t, i)()
		synctest.Wait()
		store := i.GetStore()
		require.True(t, store == cache.Store(i.GetIndexer()))
		for _, like := range []any{
			pod("a", ""), cache.ExplicitKey("ns/a"), cache.DeletedFinalStateUnknown{Key: "ns/a"},
		} {
			got, exists, err := store.Get(like)
			require.NoError(t, err)
			require.True(t, exists, "%T", like)
			require.Equal(t, "a@1", name(got))
		}
		require.Equal(t, []string{"ns/a"}, store.ListKeys())
		require.Len(t, store.List(), 1)
		require.NoError(t, store.Resync())
		require.NoError(t, store.Delete(cache.DeletedFinalStateUnknown{Key: "ns/a"}))
		require.Empty(t, store.List())
	})
}

func TestStore_ObjectWithoutKey(t *testing.T) {
	for impl, newIndexer := range indexerImpls {
		t.Run("impl="+impl, func(t *testing.T) {
			storemodel.RefusesKeyless(t, newIndexer(store.MetaNamespaceKeyFunc, cache.Indexers{}),
				func(err cache.KeyError) any { return err.Obj })
		})
	}
}

// A key function of a program is called with what the program called the store with.
func TestNewIndexer_KeyFunction(t *testing.T) {
	for impl, newIndexer := range indexerImpls {
		t.Run("impl="+impl, func(t *testing.T) {
			i := newIndexer(func(obj any) (string, error) {
				if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
					return "mine/" + tombstone.Key, nil
				}
				return "mine/" + obj.(*corev1.Pod).Name, nil
			}, cache.Indexers{})
			require.NoError(t, i.Add(pod("a", "n1")))
			require.NoError(t, i.Add(pod("b", "n1")))
			require.NoError(t, i.Delete(cache.DeletedFinalStateUnknown{Key: "a"}))
			require.Equal(t, []string{"mine/b"}, i.ListKeys())
		})
	}
}

var indexerImpls = map[string]func(cache.KeyFunc, cache.Indexers) cache.Indexer{
	"ours": adapt.NewIndexer,
	"client-go": func(keyFunc cache.KeyFunc, indexers cache.Indexers) cache.Indexer {
		return cache.NewIndexer(keyFunc, indexers)
	},
}

// Random operations leave the same in ours, in client-go's and in a searched map.
func TestModel_IndexerIsClientGos(t *testing.T) {
	storemodel.Play(t, 50, 1000, func(*testing.T) (subjects []storemodel.Subject) {
		for _, newIndexer := range indexerImpls {
			i := newIndexer(cache.MetaNamespaceKeyFunc,
				storemodel.Indexers[cache.Indexers](storemodel.First))
			subjects = append(subjects, storemodel.Subject{
				Store: i,
				AddIndexers: func(funcs map[string]storemodel.IndexFunc) error {
					return i.AddIndexers(storemodel.Indexers[cache.Indexers](funcs))
				},
			})
		}
		return subjects
	})
}
