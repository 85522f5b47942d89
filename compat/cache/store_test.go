// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"example.com/informerstack/compat/cache"
	"example.com/informerstack/internal/tools/storemodel"
)

var (
	parsePod = storemodel.Pod
	nodeOf   = storemodel.ByNode
	tagsOf   = storemodel.ByTag
	keysOf   = storemodel.KeysOf
)

func first[T any](value T, _ error) T { return value }

var errBroken = errors.New("broken")

// A store with a transform refuses an object without a key with a KeyError, in every method, and
// does not call the transform. So does a TTL store.
func TestStores_RefuseObjectsWithoutAKey(t *testing.T) {
	ofPods := func(obj any) (any, error) {
		require.NotNil(t, obj.(*v1.Pod), "the transform was called")
		return obj, nil
	}
	for _, s := range []cache.Store{
		cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithTransformer(ofPods)),
		cache.NewTTLStore(cache.MetaNamespaceKeyFunc, 0),
	} {
		storemodel.RefusesKeyless(t, s, func(err cache.KeyError) any { return err.Obj })
	}
}

var errTransform = errors.New("cannot")

// The key is computed first, then the transform runs, then the object is stored. A transform that
// fails or returns nil changes nothing. client-go stores the nil.
func TestDifference_TransformToNilIsAnError(t *testing.T) {
	transform := func(obj any) (any, error) {
		switch p := obj.(*v1.Pod); p.Name {
		case "fails":
			return nil, errTransform
		case "nil":
			return nil, nil
		case "typed-nil":
			return (*v1.Pod)(nil), nil
		case "panics":
			panic(errTransform)
		case "other":
			return &metav1.PartialObjectMetadata{
				ObjectMeta: metav1.ObjectMeta{Name: "renamed", ResourceVersion: "9"},
			}, nil
		}
		return obj, nil
	}
	s := cache.NewStore(cache.MetaNamespaceKeyFunc, cache.WithTransformer(transform))
	require.NoError(t, s.Add(parsePod("ns/a rv=1")))
	for _, name := range []string{"fails", "nil", "typed-nil"} {
		for what, err := range map[string]error{
			"add": s.Add(parsePod("ns/" + name)), "update": s.Update(parsePod("ns/" + name)),
			"replace": s.Replace([]any{parsePod("ns/b"), parsePod("ns/" + name)}, "2"),
		} {
			require.ErrorContains(t, err, "transforming: ", "%s %s", what, name)
			require.Equal(t, name == "fails", errors.Is(err, errTransform))
		}
		require.NoError(t, s.Delete(parsePod("ns/"+name)), "a delete is not transformed")
	}
	require.PanicsWithValue(t, errTransform, func() { _ = s.Add(parsePod("ns/panics")) })
	require.Equal(t, []string{"ns/a"}, s.ListKeys())

	require.NoError(t, s.Add(parsePod("ns/other")), "another type is no error")
	require.ElementsMatch(t, []string{"ns/a", "ns/other"}, s.ListKeys(),
		"the key is that of the object before")
	require.Equal(t, "9", s.LastStoreSyncResourceVersion())

	ref := clientgo.NewStore(clientgo.MetaNamespaceKeyFunc, clientgo.WithTransformer(transform))
	require.NoError(t, ref.Add(parsePod("ns/nil")))
	require.Equal(t, []any{nil}, ref.List())
}

// Transactions transform, like every other write. In client-go they do not.
func TestDifference_TransactionTransforms(t *testing.T) {
	transform := func(obj any) (any, error) {
		p := obj.(*v1.Pod).DeepCopy()
		if p.Name == "fails" {
			return nil, errTransform
		}
		p.Spec.NodeName = "dropped"
		return p, nil
	}
	s := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"node": nodeOf},
		cache.WithTransformer(transform))
	err := s.(cache.TransactionStore).Transaction(
		cache.Transaction{Object: parsePod("ns/a node=n1"), Type: cache.TransactionTypeAdd},
		cache.Transaction{Object: parsePod("ns/fails"), Type: cache.TransactionTypeUpdate},
		cache.Transaction{Object: parsePod("ns/fails"), Type: cache.TransactionTypeDelete})
	require.Equal(t, []int{0, 2}, err.SuccessfulIndices)
	require.ErrorIs(t, err, errTransform)
	require.Equal(t, []string{"dropped"}, s.ListIndexFuncValues("node"))

	ref := clientgo.NewStore(clientgo.MetaNamespaceKeyFunc, clientgo.WithTransformer(transform))
	require.Nil(t, ref.(clientgo.TransactionStore).Transaction(
		clientgo.Transaction{Object: parsePod("ns/a node=n1"), Type: clientgo.TransactionTypeAdd}))
	require.Equal(t, "n1", ref.List()[0].(*v1.Pod).Spec.NodeName)
}

// A transform that panics changes nothing, and the lock is free.
func TestTransformPanics(t *testing.T) {
	s := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{"node": nodeOf},
		cache.WithTransformer(func(obj any) (any, error) {
			if obj.(*v1.Pod).Name == "bad" {
				panic(errBroken)
			}
			return obj, nil
		}))
	require.NoError(t, s.Replace([]any{parsePod("ns/a node=n1")}, "1"))
	bad, good := parsePod("ns/bad node=n1 rv=2"), parsePod("ns/b node=n1 rv=2")
	for _, write := range []func(){
		func() { _ = s.Add(bad) },
		func() { _ = s.Replace([]any{good, bad}, "2") },
		func() {
			s.(cache.TransactionStore).Transaction(
				cache.Transaction{Object: good, Type: cache.TransactionTypeAdd},
				cache.Transaction{Object: bad, Type: cache.TransactionTypeAdd})
		},
	} {
		require.PanicsWithValue(t, errBroken, write)
		require.Equal(t, []string{"ns/a"}, first(s.IndexKeys("node", "n1")))
		require.Equal(t, "1", s.LastStoreSyncResourceVersion())
	}
}

// A transaction of a store with a transform reports changes of unknown types and without a key. It
// does not transform deletes.
func TestTransformingStore_Transaction(t *testing.T) {
	same := func(obj any) (any, error) { return obj, nil }
	s := cache.NewStore(
		cache.MetaNamespaceKeyFunc, cache.WithTransformer(same),
	).(cache.TransactionStore)
	add := cache.Transaction{Object: parsePod("ns/a rv=1"), Type: cache.TransactionTypeAdd}
	require.Nil(t, s.Transaction(add))
	require.Nil(t, s.Transaction())
	err := s.Transaction(cache.Transaction{Object: parsePod("ns/b"), Type: "Move"},
		cache.Transaction{Object: "keyless", Type: cache.TransactionTypeDelete},
		cache.Transaction{Object: parsePod("ns/a rv=2"), Type: cache.TransactionTypeDelete})
	require.ErrorContains(t, err, `unknown transaction type "Move"`)
	require.ErrorAs(t, err, &cache.KeyError{})
	require.Equal(t, []int{2}, err.SuccessfulIndices)
	require.Equal(t, 3, err.TotalTransactions)
	require.Empty(t, s.(cache.Store).List())
	require.Equal(t, "2", s.(cache.Store).LastStoreSyncResourceVersion())
}

// An object without metadata leaves the store's resourceVersion as it is. A whole list has a
// resourceVersion of its own.
func TestResourceVersionOfWhatHasNone(t *testing.T) {
	name := func(obj any) (string, error) {
		if o, ok := obj.(metav1.Object); ok {
			return o.GetName(), nil
		}
		return obj.(string), nil
	}
	toName := func(obj any) (any, error) { return name(obj) }
	for _, s := range []storemodel.Unindexed{
		cache.NewStore(name, cache.WithTransformer(toName)),
		clientgo.NewStore(name, clientgo.WithTransformer(toName)),
	} {
		require.NoError(t, s.Replace([]any{parsePod("ns/a rv=1")}, "5"))
		require.NoError(t, s.Update(parsePod("ns/a rv=6")))
		require.Equal(t, "5", s.LastStoreSyncResourceVersion())
		require.Equal(t, []any{"a"}, s.List())
		require.NoError(t, s.Replace([]any{parsePod("ns/a rv=1")}, "7"))
		require.Equal(t, "7", s.LastStoreSyncResourceVersion())
	}
}

// An index function as a key function: exactly one value.
func TestIndexFuncToKeyFuncAdapter(t *testing.T) {
	keyFunc := cache.IndexFuncToKeyFuncAdapter(tagsOf)
	key, err := keyFunc(parsePod("ns/a tags=x"))
	require.NoError(t, err)
	require.Equal(t, "x", key)
	for object, want := range map[string]string{
		"ns/a":          "unexpected empty indexKeys",
		"ns/a tags=x,y": "too many keys: [x y]",
	} {
		_, err = keyFunc(parsePod(object))
		require.EqualError(t, err, want)
		_, refErr := clientgo.IndexFuncToKeyFuncAdapter(tagsOf)(parsePod(object))
		require.EqualError(t, refErr, want)
	}
	failing := func(any) ([]string, error) { return nil, errBroken }
	_, err = cache.IndexFuncToKeyFuncAdapter(failing)(parsePod("ns/a"))
	require.ErrorIs(t, err, errBroken)
}
