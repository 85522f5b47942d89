// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgo "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"example.com/informerstack/compat/cache"
	"example.com/informerstack/internal/tools/storemodel"
)

// notifiable is a mutation cache with notifications of the store: client-go's has them since v0.37.
type notifiable interface {
	GetByKey(key string) (any, bool, error)
	ByIndex(indexName, indexedValue string) ([]any, error)
	Mutation(obj any)
	OnAddOrUpdate(obj runtime.Object)
	OnDelete(obj runtime.Object)
}

func newMutationCache(
	backing cache.Store, indexer cache.Indexer, includeAdds bool,
) cache.MutationCache {
	return cache.NewIntegerResourceVersionMutationCache(
		klog.Background(), backing, indexer, 0, includeAdds)
}

// The same random writes, seen by the store some time later, give the same reads on both.
func TestModel_MutationCache(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 3))
		includeAdds := seed%2 == 0
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"node": byNode})
		theirIndexer := clientgo.NewIndexer(clientgo.MetaNamespaceKeyFunc,
			clientgo.Indexers{"node": byNode})
		ours := newMutationCache(indexer, indexer, includeAdds)
		theirs, ok := clientgo.NewIntegerResourceVersionMutationCache(
			klog.Background(), theirIndexer, theirIndexer, 0, includeAdds,
		).(notifiable)
		if !ok {
			t.Skip("client-go's has no notifications of the store")
		}

		caches := []notifiable{ours, theirs}
		stores := []storemodel.Unindexed{indexer, theirIndexer}

		// the objects on the API server; the store receives changes later, in order
		server := map[string]*v1.Pod{}
		var unseen []func()
		for step := range 40 {
			name := string(rune('a' + random.IntN(3)))
			uid := types.UID(name)
			if old := server[name]; old != nil {
				uid = old.UID
			} else {
				uid += types.UID(strconv.Itoa(step))
			}
			p := podOnNode(name, step+1, "node-"+strconv.Itoa(random.IntN(2)), uid)
			switch op := random.IntN(8); {
			case op <= 2: // the program's own write
				server[name] = p
				for i, c := range caches {
					c.Mutation(p)
					unseen = append(unseen, func() {
						require.NoError(t, stores[i].Add(p))
						c.OnAddOrUpdate(p)
					})
				}
			case op == 3 && server[name] != nil: // another client deletes
				delete(server, name)
				for i, c := range caches {
					unseen = append(unseen, func() {
						require.NoError(t, stores[i].Delete(p))
						c.OnDelete(p)
					})
				}
			case op == 4: // a late answer to an old write
				late := podOnNode(name, 1+random.IntN(step+1), "node-0", uid)
				for _, c := range caches {
					c.Mutation(late)
				}
			case len(unseen) > 0:
				unseen[0]()
				unseen[1]() // the same in client-go's
				unseen = unseen[2:]
			}
			where := fmt.Sprintf("seed %d step %d", seed, step)
			for _, name := range []string{"a", "b", "c"} {
				if _, stored, _ := indexer.GetByKey("ns/" + name); includeAdds && !stored {
					// client-go drops a write when it returns it:
					// TestDifference_MutationCacheKeepsWhatWasRead
					continue
				}
				got, exists, err := ours.GetByKey("ns/" + name)
				require.NoError(t, err)
				want, wantExists, err := theirs.GetByKey("ns/" + name)
				require.NoError(t, err)
				require.Equal(t, wantExists, exists, "%s: %s", where, name)
				require.Equal(t, want, got, "%s: %s", where, name)
			}
			got, err := ours.ByIndex("node", "node-1")
			require.NoError(t, err)
			want, err := theirs.ByIndex("node", "node-1")
			require.NoError(t, err)
			require.ElementsMatch(t, want, got, where)
		}
	}
}

// leavingIndexer is an indexer that an object leaves between the two reads of ByIndex. Its keys
// have no order.
type leavingIndexer struct{ cache.Indexer }

func (leavingIndexer) IndexKeys(string, string) ([]string, error) {
	return []string{"ns/gone", "ns/b"}, nil
}

// A key that the index lists, but the store no longer has, does not hide a write. client-go's hides
// it until v0.38.
func TestMutationCache_AKeyWithoutAnObjectHidesNoWrite(t *testing.T) {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"node": byNode})
	require.NoError(t, indexer.Add(podOnNode("b", 1, "n", "b")))
	c := newMutationCache(indexer, leavingIndexer{indexer}, true)
	gone, b := podOnNode("gone", 3, "n", "gone"), podOnNode("b", 2, "n", "b")
	c.Mutation(gone)
	c.Mutation(b)
	got, err := c.ByIndex("node", "n")
	require.NoError(t, err)
	require.ElementsMatch(t, []any{b, gone}, got)
}

// A write is returned until the store has caught up, and not afterwards.
func TestMutationCache_ReadsOwnWrites(t *testing.T) {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	c := cache.NewIntegerResourceVersionMutationCacheWithOptions(klog.Background(), indexer,
		cache.MutationCacheOptions{})
	require.NoError(t, indexer.Add(pod("a", 1)))
	c.Mutation(pod("a", 2))
	require.Equal(t, pod("a", 2), get(t, c, "ns/a"))
	require.NoError(t, indexer.Update(pod("a", 3)))
	require.Equal(t, pod("a", 3), get(t, c, "ns/a"))

	_, err := c.ByIndex("node", "x")
	require.EqualError(t, err, "no indexer has been provided to the mutation cache")
}

// An object that the store does not hold yet can be read more than once. client-go compares it with
// itself, concludes that the store has caught up, and drops it.
func TestDifference_MutationCacheKeepsWhatWasRead(t *testing.T) {
	ours := newMutationCache(cache.NewStore(cache.MetaNamespaceKeyFunc), nil, true)
	theirs := clientgo.NewIntegerResourceVersionMutationCache(klog.Background(),
		clientgo.NewStore(clientgo.MetaNamespaceKeyFunc), nil, 0, true)
	for i, c := range []interface {
		Mutation(any)
		GetByKey(key string) (any, bool, error)
	}{ours, theirs} {
		c.Mutation(pod("a", 1))
		_, exists, err := c.GetByKey("ns/a")
		require.NoError(t, err)
		require.True(t, exists || i == 1, "client-go v0.36 forgets it at once")
		_, again, err := c.GetByKey("ns/a")
		require.NoError(t, err)
		require.Equal(t, i == 0, again)
	}
}

// The store may still hold an object after its informer's handler was notified of the deletion.
// client-go returns its internal marker then.
func TestDifference_MutationCacheReturnsNoTombstone(t *testing.T) {
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	require.NoError(t, store.Add(pod("a", 1)))
	ours := newMutationCache(store, nil, true)
	ours.OnDelete(pod("a", 2))
	require.Equal(t, pod("a", 1), get(t, ours, "ns/a"))

	theirStore := clientgo.NewStore(clientgo.MetaNamespaceKeyFunc)
	require.NoError(t, theirStore.Add(pod("a", 1)))
	theirs, ok := clientgo.NewIntegerResourceVersionMutationCache(klog.Background(), theirStore,
		nil, 0, true).(notifiable)
	if !ok {
		t.Skip("client-go's has no notifications of the store")
	}
	theirs.OnDelete(pod("a", 2))
	got, _, err := theirs.GetByKey("ns/a")
	require.NoError(t, err)
	require.NotEqual(t, pod("a", 1), got)
}

// A resourceVersion that is not a number matters only when it is compared.
func TestMutationCache_ResourceVersionIsRead(t *testing.T) {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"node": byNode})
	c := newMutationCache(indexer, indexer, true)
	written := podOnNode("a", 1, "node-0", "uid")
	written.ResourceVersion = "no number"
	c.OnDelete(pod("b", 1))
	c.Mutation(written)
	found, err := c.ByIndex("node", "node-0")
	require.NoError(t, err)
	require.Equal(t, []any{written}, found)
	require.NoError(t, indexer.Add(pod("a", 1)))
	require.Panics(t, func() { _, _, _ = c.GetByKey("ns/a") })
}

func get(t *testing.T, c cache.MutationCache, key string) any {
	t.Helper()
	obj, exists, err := c.GetByKey(key)
	require.NoError(t, err)
	require.True(t, exists)
	return obj
}

// The answer to a write arrives after the object was deleted: it does not restore the object.
func TestMutationCache_LateWriteOfADeletedObject(t *testing.T) {
	for _, recreated := range []bool{false, true} {
		indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
		c := newMutationCache(indexer, indexer, true)
		written := podOnNode("a", 2, "", "first")
		c.OnAddOrUpdate(written)
		c.OnDelete(written)
		again := podOnNode("a", 3, "", "second")
		if recreated {
			require.NoError(t, indexer.Add(again))
			c.OnAddOrUpdate(again)
		}
		c.Mutation(written)
		if recreated {
			require.Equal(t, again, get(t, c, "ns/a"))
			continue
		}
		_, exists, err := c.GetByKey("ns/a")
		require.NoError(t, err)
		require.False(t, exists)
	}
}
