// SPDX-License-Identifier: Apache-2.0

package adapt_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/compat/adapt"
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
			i := newIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
			_, _, err := i.Get(7)
			for _, err := range []error{
				err, i.Add(7), i.Update(7), i.Delete(7), i.Replace([]any{7}, "1"),
			} {
				var keyError cache.KeyError
				require.True(t, errors.As(err, &keyError), "%T %v", err, err)
				require.Equal(t, 7, keyError.Obj)
			}
			require.NoError(t, i.Add(pod("a", "n1")))
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

// Random operations leave the same in ours and in client-go's.
func TestModel_IndexerIsClientGos(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		indexers := cache.Indexers{"node": byNode}
		ours, theirs := adapt.NewIndexer(
			cache.MetaNamespaceKeyFunc,
			indexers,
		), cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
		for range 100 {
			obj := pod(fmt.Sprint(random.IntN(10)), fmt.Sprint(random.IntN(4)))
			operation := random.IntN(6)
			var results [2]string
			for n, i := range []cache.Indexer{ours, theirs} {
				results[n] = operate(i, operation, obj)
			}
			require.Equal(t, results[1], results[0], "operation %d", operation)
			require.Equal(t, contents(theirs), contents(ours))
		}
	}
}

func operate(i cache.Indexer, operation int, obj *corev1.Pod) string {
	switch operation {
	case 0:
		return fmt.Sprint(i.Add(obj))
	case 1:
		return fmt.Sprint(i.Update(obj))
	case 2:
		return fmt.Sprint(i.Delete(obj))
	case 3:
		return fmt.Sprint(i.Replace([]any{obj, pod("other", obj.Spec.NodeName)}, "7"),
			i.LastStoreSyncResourceVersion())
	case 4:
		_, exists, err := i.GetByKey("ns/" + obj.Name)
		return fmt.Sprint(exists, err)
	default:
		return fmt.Sprint(i.AddIndexers(cache.Indexers{"name" + obj.Spec.NodeName: byName}),
			len(i.GetIndexers()))
	}
}

// contents is everything that can be read from an indexer.
func contents(i cache.Indexer) map[string][]string {
	all := map[string][]string{"keys": i.ListKeys()}
	for index := range i.GetIndexers() {
		for _, value := range i.ListIndexFuncValues(index) {
			keys, _ := i.IndexKeys(index, value)
			all[index+"="+value] = keys
		}
	}
	for _, keys := range all {
		slices.Sort(keys)
	}
	return all
}
