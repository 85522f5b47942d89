// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"example.com/informerstack/compat/cache"
)

// A ThreadSafeStore takes any object, also nil, which has no indexed values.
func TestThreadSafeStoreTakesAnything(t *testing.T) {
	m := cache.NewThreadSafeStore(cache.Indexers{"node": nodeOf}, cache.Indices{})
	m.Add("nil", nil)
	m.Add("ns/a", parsePod("ns/a node=n1"))
	m.Add("ns/a", nil) // takes it out of the indexes
	require.Empty(t, m.ListIndexFuncValues("node"))
	item, exists := m.Get("nil")
	require.True(t, exists)
	require.Nil(t, item)
	m.Delete("ns/a")
	m.Delete("nil")
	m.Delete("nil")
	m.(cache.ThreadSafeStoreWithTransaction).Transaction()
	require.Empty(t, m.List())

	plain := cache.NewThreadSafeStore(nil, nil)
	plain.Add("typed nil", (*v1.Pod)(nil))
	plain.Add("text", "text")
	require.Len(t, plain.List(), 2)
	require.NoError(t, plain.AddIndexers(nil))
	require.Empty(t, plain.LastStoreSyncResourceVersion())
	require.NoError(t, plain.Resync())
	_, exists = plain.Get("none")
	require.False(t, exists)
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
	Add(key string, obj any)
	Update(key string, obj any)
	Delete(key string)
	DeleteWithObject(key string, obj any)
	Get(key string) (item any, exists bool)
	List() []any
	ListKeys() []string
	Replace(items map[string]any, resourceVersion string)
	Index(indexName string, obj any) ([]any, error)
	IndexKeys(indexName, indexedValue string) ([]string, error)
	ListIndexFuncValues(indexName string) []string
	ByIndex(indexName, indexedValue string) ([]any, error)
	Bookmark(resourceVersion string)
	LastStoreSyncResourceVersion() string
}

func randomPod(random *rand.Rand, version int) *v1.Pod {
	tags := []string{"", "a", "a,b", "b,c", "b,b"}[random.IntN(5)]
	return parsePod(fmt.Sprintf("ns/p%d node=n%d tags=%s rv=%d",
		random.IntN(6), random.IntN(3), tags, version))
}

// Random operations leave our store and client-go's with the same content.
func TestModel_ThreadSafeStore(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 6))
		ours := cache.NewThreadSafeStore(cache.Indexers{"node": nodeOf}, cache.Indices{})
		theirs := clientgo.NewThreadSafeStore(clientgo.Indexers{"node": nodeOf}, clientgo.Indices{})
		for version := range 60 {
			p := randomPod(random, version)
			key := "any/" + p.Name
			op := random.IntN(9)
			for _, s := range []keyedStore{ours, theirs} {
				switch op {
				case 0, 1:
					s.Add(key, p)
				case 2:
					s.Update(key, p)
				case 3:
					s.Delete(key)
				case 4:
					s.DeleteWithObject(key, p)
				case 5:
					s.Replace(map[string]any{key: p, "other": p}, fmt.Sprint(1000+version))
				case 6:
					s.Bookmark(fmt.Sprint(version))
				}
			}
			switch op {
			case 7:
				transact(ours, theirs, random, version)
			case 8:
				err := ours.AddIndexers(cache.Indexers{"tag": tagsOf})
				require.Equal(t, theirs.AddIndexers(clientgo.Indexers{"tag": tagsOf}), err)
			}
			requireSameContent(t, ours, theirs, p)
		}
	}
}

func transact(
	ours cache.ThreadSafeStore, theirs clientgo.ThreadSafeStore, random *rand.Rand, version int,
) {
	types := []cache.TransactionType{
		cache.TransactionTypeAdd, cache.TransactionTypeUpdate, cache.TransactionTypeDelete}
	var our []cache.ThreadSafeStoreTransaction
	var their []clientgo.ThreadSafeStoreTransaction
	for range random.IntN(6) {
		p, kind := randomPod(random, version), types[random.IntN(3)]
		our = append(our, cache.ThreadSafeStoreTransaction{
			Transaction: cache.Transaction{Object: p, Type: kind}, Key: p.Name})
		their = append(their, clientgo.ThreadSafeStoreTransaction{
			Transaction: clientgo.Transaction{Object: p, Type: clientgo.TransactionType(kind)},
			Key:         p.Name})
	}
	ours.(cache.ThreadSafeStoreWithTransaction).Transaction(our...)
	theirs.(clientgo.ThreadSafeStoreWithTransaction).Transaction(their...)
}

func requireSameContent(t *testing.T, ours, theirs keyedStore, probe *v1.Pod) {
	t.Helper()
	keys := theirs.ListKeys()
	require.ElementsMatch(t, keys, ours.ListKeys())
	require.ElementsMatch(t, theirs.List(), ours.List())
	require.Equal(t, theirs.LastStoreSyncResourceVersion(), ours.LastStoreSyncResourceVersion())
	for _, key := range append(keys, "none") {
		want, wantExists := theirs.Get(key)
		got, exists := ours.Get(key)
		require.Equal(t, wantExists, exists)
		require.Equal(t, want, got)
	}
	for _, name := range []string{"node", "tag"} {
		require.ElementsMatch(t, theirs.ListIndexFuncValues(name), ours.ListIndexFuncValues(name))
		want, wantErr := theirs.Index(name, probe)
		got, err := ours.Index(name, probe)
		require.Equal(t, wantErr, err)
		require.ElementsMatch(t, want, got)
		for _, value := range slices.Concat(ours.ListIndexFuncValues(name), []string{"none"}) {
			require.Equal(t, first(theirs.IndexKeys(name, value)),
				first(ours.IndexKeys(name, value)))
			want, wantErr := theirs.ByIndex(name, value)
			got, err := ours.ByIndex(name, value)
			require.Equal(t, wantErr, err)
			require.ElementsMatch(t, want, got)
		}
	}
}
