// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clientgo "k8s.io/client-go/tools/cache"
)

// Where client-go takes a store it takes ours.
var (
	_ clientgo.Store           = Store(nil)
	_ clientgo.ReflectorStore  = Store(nil)
	_ clientgo.KeyListerGetter = Store(nil)
	_ GaugeMetric              = clientgo.GaugeMetric(nil)
)

// Every method refuses what has no key, with a KeyError, and changes nothing. In client-go a nil pointer panics.
func TestDifference_NilPointerIsAKeyError(t *testing.T) {
	stores := map[string]Store{
		"New":         New(MetaNamespaceKeyFunc),
		"NewIndexer":  NewIndexer(MetaNamespaceKeyFunc, Indexers{NamespaceIndex: MetaNamespaceIndexFunc}),
		"NewTTLStore": NewTTLStore(MetaNamespaceKeyFunc, 0),
		"transformer": New(MetaNamespaceKeyFunc, WithTransformer(func(obj any) (any, error) { return obj, nil })),
	}
	for name, s := range stores {
		for _, bad := range []any{nil, (*corev1.Pod)(nil), (*unstructured.Unstructured)(nil), "text", 7, struct{}{}, &struct{}{}} {
			t.Run(fmt.Sprintf("%s/%T", name, bad), func(t *testing.T) {
				require.NoError(t, s.Replace([]any{pod("ns/a rv=1")}, "1"))
				_, _, getErr := s.Get(bad)
				for what, err := range map[string]error{
					"add": s.Add(bad), "update": s.Update(bad), "delete": s.Delete(bad),
					"replace": s.Replace([]any{pod("ns/b"), bad}, "2"), "get": getErr,
				} {
					var keyErr KeyError
					require.ErrorAs(t, err, &keyErr, what)
					require.Equal(t, bad, keyErr.Obj)
					require.ErrorContains(t, err, "couldn't create key for object")
					require.ErrorContains(t, keyErr.Unwrap(), "object has no meta: ")
				}
				require.Equal(t, []string{"ns/a"}, s.ListKeys())
				require.Equal(t, "1", s.LastStoreSyncResourceVersion())
			})
		}
	}
	require.Panics(t, func() { _ = clientgo.NewStore(clientgo.MetaNamespaceKeyFunc).Add((*corev1.Pod)(nil)) })
	_, err := MetaNamespaceIndexFunc((*corev1.Pod)(nil))
	require.EqualError(t, err, "object has no meta: *v1.Pod is nil")
}

// A ThreadSafeStore takes any object, even none: it only does not look into it.
func TestThreadSafeStoreTakesAnything(t *testing.T) {
	m := newThreadSafeMap(Indexers{"node": byNode})
	m.Add("nil", nil)
	m.Add("ns/a", pod("ns/a node=n1"))
	m.Add("ns/a", nil) // takes it out of the indexes
	checkLaws(t, m)
	item, exists := m.Get("nil")
	require.True(t, exists)
	require.Nil(t, item)
	m.Delete("ns/a")
	m.Delete("nil")
	m.Delete("nil")
	m.Transaction()
	checkLaws(t, m)

	plain := newThreadSafeMap(nil)
	plain.Add("typed nil", (*corev1.Pod)(nil))
	plain.Add("text", "text")
	require.Len(t, plain.List(), 2)
	require.NoError(t, plain.AddIndexers(nil))
	require.Empty(t, plain.LastStoreSyncResourceVersion())
}

// Keys and names, and back.
func TestKeys(t *testing.T) {
	for _, c := range []struct{ key, namespace, name, err string }{
		{key: "name", name: "name"},
		{key: "ns/name", namespace: "ns", name: "name"},
		{key: "/name", name: "name"},
		{key: "ns/", namespace: "ns"},
		{key: ""},
		{key: "a/b/c", err: `unexpected key format: "a/b/c"`},
		{key: "a/b/c/d", err: `unexpected key format: "a/b/c/d"`},
	} {
		t.Run(c.key, func(t *testing.T) {
			namespace, name, err := SplitMetaNamespaceKey(c.key)
			wantNamespace, wantName, wantErr := clientgo.SplitMetaNamespaceKey(c.key)
			require.Equal(t, []string{wantNamespace, wantName}, []string{namespace, name})
			require.Equal(t, []string{c.namespace, c.name}, []string{namespace, name})
			parsed, parseErr := ParseObjectName(c.key)
			if c.err != "" {
				require.EqualError(t, err, c.err)
				require.EqualError(t, wantErr, c.err)
				require.EqualError(t, parseErr, c.err)
				return
			}
			require.NoError(t, err)
			require.NoError(t, parseErr)
			require.Equal(t, NewObjectName(namespace, name), parsed)
			require.Equal(t, NamespacedNameAsObjectName(types.NamespacedName{Namespace: namespace, Name: name}), parsed)
			require.Equal(t, types.NamespacedName{Namespace: namespace, Name: name}, parsed.AsNamespacedName())
			key, err := MetaNamespaceKeyFunc(&metav1.ObjectMeta{Namespace: namespace, Name: name})
			require.NoError(t, err)
			require.Equal(t, parsed.String(), key)
			gotNamespace, gotName := parsed.Parts()
			require.Equal(t, []string{namespace, name}, []string{gotNamespace, gotName})
		})
	}
	key, err := MetaNamespaceKeyFunc(ExplicitKey("any/thing/at all"))
	require.NoError(t, err)
	require.Equal(t, "any/thing/at all", key)
}

// A tombstone knows its key even if its object is lost; nothing else of a tombstone has metadata.
func TestTombstoneKeys(t *testing.T) {
	gone := DeletedFinalStateUnknown{Key: "ns/a", Obj: nil}
	key, err := DeletionHandlingMetaNamespaceKeyFunc(gone)
	require.NoError(t, err)
	require.Equal(t, "ns/a", key)
	name, err := DeletionHandlingObjectToName(gone)
	require.NoError(t, err)
	require.Equal(t, NewObjectName("ns", "a"), name)
	name, err = DeletionHandlingObjectToName(pod("ns/b"))
	require.NoError(t, err)
	require.Equal(t, NewObjectName("ns", "b"), name)
	key, err = DeletionHandlingMetaNamespaceKeyFunc(pod("ns/b"))
	require.NoError(t, err)
	require.Equal(t, "ns/b", key)
	_, err = MetaNamespaceKeyFunc(gone)
	require.ErrorContains(t, err, "object has no meta")

	s := New(DeletionHandlingMetaNamespaceKeyFunc)
	require.NoError(t, s.Add(pod("ns/a rv=5")))
	require.NoError(t, s.Delete(gone))
	require.Empty(t, s.List())
	require.Equal(t, "5", s.LastStoreSyncResourceVersion(), "a tombstone does not know when it happened")
}

var errTransform = errors.New("cannot")

// The key is computed first, then the transform runs, then the object is stored; a transform that fails or returns nil
// changes nothing. client-go stores the nil.
func TestDifference_TransformToNilIsAnError(t *testing.T) {
	transform := func(obj any) (any, error) {
		switch p := obj.(*corev1.Pod); p.Name {
		case "fails":
			return nil, errTransform
		case "nil":
			return nil, nil
		case "typed-nil":
			return (*corev1.Pod)(nil), nil
		case "panics":
			panic(errTransform)
		case "other":
			return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "renamed", ResourceVersion: "9"}}, nil
		}
		return obj, nil
	}
	s := New(MetaNamespaceKeyFunc, WithTransformer(transform))
	require.NoError(t, s.Add(pod("ns/a rv=1")))
	for _, name := range []string{"fails", "nil", "typed-nil"} {
		for what, err := range map[string]error{
			"add": s.Add(pod("ns/" + name)), "update": s.Update(pod("ns/" + name)),
			"replace": s.Replace([]any{pod("ns/b"), pod("ns/" + name)}, "2"),
		} {
			require.ErrorContains(t, err, "transforming: ", "%s %s", what, name)
			require.Equal(t, name == "fails", errors.Is(err, errTransform))
		}
		require.NoError(t, s.Delete(pod("ns/"+name)), "a delete is not transformed")
	}
	require.PanicsWithValue(t, errTransform, func() { _ = s.Add(pod("ns/panics")) })
	require.Equal(t, []string{"ns/a"}, s.ListKeys())

	require.NoError(t, s.Add(pod("ns/other")), "another type is no error")
	require.ElementsMatch(t, []string{"ns/a", "ns/other"}, s.ListKeys(), "the key is that of the object before")
	require.Equal(t, "9", s.LastStoreSyncResourceVersion())

	ref := clientgo.NewStore(clientgo.MetaNamespaceKeyFunc, clientgo.WithTransformer(transform))
	require.NoError(t, ref.Add(pod("ns/nil")))
	require.Equal(t, []any{nil}, ref.List())
}

// Transactions transform like every other write. In client-go they store what comes.
func TestDifference_TransactionTransforms(t *testing.T) {
	transform := func(obj any) (any, error) {
		p := obj.(*corev1.Pod).DeepCopy()
		if p.Name == "fails" {
			return nil, errTransform
		}
		p.Spec.NodeName = "dropped"
		return p, nil
	}
	s := NewIndexer(MetaNamespaceKeyFunc, Indexers{"node": byNode}, WithTransformer(transform))
	err := s.(TransactionStore).Transaction(
		Transaction{pod("ns/a node=n1"), TransactionTypeAdd},
		Transaction{pod("ns/fails"), TransactionTypeUpdate},
		Transaction{pod("ns/fails"), TransactionTypeDelete})
	require.Equal(t, []int{0, 2}, err.SuccessfulIndices)
	require.ErrorIs(t, err, errTransform)
	require.Equal(t, []string{"dropped"}, s.ListIndexFuncValues("node"))

	ref := clientgo.NewStore(clientgo.MetaNamespaceKeyFunc, clientgo.WithTransformer(transform))
	require.Nil(t, ref.(clientgo.TransactionStore).Transaction(
		clientgo.Transaction{Object: pod("ns/a node=n1"), Type: clientgo.TransactionTypeAdd}))
	require.Equal(t, "n1", ref.List()[0].(*corev1.Pod).Spec.NodeName)
}

// An index function as a key function: exactly one value.
func TestIndexFuncToKeyFuncAdapter(t *testing.T) {
	keyFunc := IndexFuncToKeyFuncAdapter(byTag)
	key, err := keyFunc(pod("ns/a tags=x"))
	require.NoError(t, err)
	require.Equal(t, "x", key)
	for object, want := range map[string]string{
		"ns/a":          "unexpected empty indexKeys",
		"ns/a tags=x,y": "too many keys: [x y]",
	} {
		_, err = keyFunc(pod(object))
		require.EqualError(t, err, want)
		_, refErr := clientgo.IndexFuncToKeyFuncAdapter(byTag)(pod(object))
		require.EqualError(t, refErr, want)
	}
	_, err = IndexFuncToKeyFuncAdapter(playerIndexes["picky"])(pod("ns/a broken=error"))
	require.ErrorIs(t, err, errBroken)
}

// A resourceVersion that is hidden is still kept.
func TestWithResourceVersionHidden(t *testing.T) {
	hide := true
	hidden := func() bool { return hide }
	var set gauge
	s := NewIndexer(MetaNamespaceKeyFunc, nil, WithResourceVersionHidden(hidden), WithStoreMetrics(&set))
	threadSafe := NewThreadSafeStore(nil, nil, WithThreadSafeStoreResourceVersionHidden(hidden))
	s.Bookmark("7")
	threadSafe.Bookmark("7")
	require.Empty(t, s.LastStoreSyncResourceVersion())
	require.Empty(t, threadSafe.LastStoreSyncResourceVersion())
	require.Equal(t, gauge{7}, set)
	hide = false
	require.Equal(t, "7", s.LastStoreSyncResourceVersion())
	require.Equal(t, "7", threadSafe.LastStoreSyncResourceVersion())
}

// What has no metadata says nothing about how new the store is. A whole list has a resourceVersion of its own.
func TestResourceVersionOfWhatHasNone(t *testing.T) {
	name := func(obj any) (string, error) {
		if o, ok := obj.(metav1.Object); ok {
			return o.GetName(), nil
		}
		return obj.(string), nil
	}
	toName := func(obj any) (any, error) { return name(obj) }
	ours, theirs := New(name, WithTransformer(toName)), clientgo.NewStore(name, clientgo.WithTransformer(toName))
	require.NoError(t, ours.Replace([]any{pod("ns/a rv=1")}, "5"))
	require.NoError(t, theirs.Replace([]any{pod("ns/a rv=1")}, "5"))
	require.NoError(t, ours.Update(pod("ns/a rv=6")))
	require.NoError(t, theirs.Update(pod("ns/a rv=6")))
	require.Equal(t, theirs.LastStoreSyncResourceVersion(), ours.LastStoreSyncResourceVersion())
	require.Equal(t, "5", ours.LastStoreSyncResourceVersion())
	require.Equal(t, []any{"a"}, ours.List())
	require.NoError(t, ours.Replace([]any{pod("ns/a rv=1")}, "7"))
	require.Equal(t, "7", ours.LastStoreSyncResourceVersion())
}
