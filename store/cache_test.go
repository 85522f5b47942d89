// SPDX-License-Identifier: Apache-2.0

package store

import (
	"cmp"
	"errors"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgo "k8s.io/client-go/tools/cache"

	"example.com/informerstack/internal/tools/storemodel"
)

// Where client-go takes a store it takes ours.
var (
	_ clientgo.Store           = Store(nil)
	_ clientgo.ReflectorStore  = Store(nil)
	_ clientgo.KeyListerGetter = Store(nil)
)

// Every method refuses an object without a key with a KeyError, and changes nothing. In client-go a
// nil pointer panics.
func TestDifference_NilPointerIsAKeyError(t *testing.T) {
	keyFunc := func(obj any) (string, error) {
		key, err := MetaNamespaceKeyFunc(obj)
		return cmp.Or(key, "ns/a"), err // beside an error, a key counts for nothing
	}
	for _, indexers := range []Indexers{nil, {NamespaceIndex: MetaNamespaceIndexFunc}} {
		s := New(keyFunc, Options{Indexers: indexers})
		storemodel.RefusesKeyless(t, s, func(err KeyError) any {
			require.ErrorContains(t, err.Unwrap(), "object has no meta: ")
			return err.Obj
		})
		for _, bad := range storemodel.Keyless {
			failed := s.(TransactionStore).Transaction(Transaction{bad, TransactionTypeAdd})
			var keyErr KeyError
			require.ErrorAs(t, failed, &keyErr)
			require.Equal(t, bad, keyErr.Obj)
		}
		require.Equal(t, []string{"ns/a"}, s.ListKeys())
		require.Equal(t, "1", s.LastStoreSyncResourceVersion())
	}
	require.Panics(t,
		func() { _ = clientgo.NewStore(clientgo.MetaNamespaceKeyFunc).Add((*corev1.Pod)(nil)) })
	_, err := MetaNamespaceIndexFunc((*corev1.Pod)(nil))
	require.EqualError(t, err, "object has no meta: *v1.Pod is nil")
}

// The version of a store is that of the newest object, list or bookmark, unless an option knows it.
func TestOptions_ResourceVersion(t *testing.T) {
	for known, want := range map[bool][]string{
		false: {"1", "4", "5", "7", "9", "10"}, true: {"1", "1", "2", "3", "4", "5"},
	} {
		var got []string
		var reported []float64
		options := Options{Metrics: Metrics{
			ResourceVersion: func(number float64) { reported = append(reported, number) },
		}}
		if known {
			options.ResourceVersion = func() (string, bool) {
				return strconv.Itoa(len(got)), len(got) > 0
			}
		}
		s := New(MetaNamespaceKeyFunc, options)
		for _, change := range []func() error{
			func() error { return s.Replace([]any{pod("ns/a rv=1")}, "1") },
			func() error { return s.Add(pod("ns/b rv=4")) },
			func() error { return s.Update(pod("ns/a rv=5")) },
			func() error { return s.Delete(pod("ns/b rv=7")) },
			func() error { s.Bookmark("9"); return nil },
			func() error {
				failed := s.(TransactionStore).Transaction(
					Transaction{Type: TransactionTypeAdd, Object: pod("ns/c rv=10")})
				require.Nil(t, failed)
				return nil
			},
		} {
			require.NoError(t, change())
			got = append(got, s.LastStoreSyncResourceVersion())
		}
		require.Equal(t, want, got)
		if known {
			require.Empty(t, reported)
		} else {
			require.Equal(t, []float64{1, 4, 5, 7, 9, 10}, reported)
		}
	}
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
			require.Equal(t, types.NamespacedName{Namespace: namespace, Name: name},
				parsed.AsNamespacedName())
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

	s := New(DeletionHandlingMetaNamespaceKeyFunc, Options{})
	require.NoError(t, s.Add(pod("ns/a rv=5")))
	require.NoError(t, s.Delete(gone))
	require.Empty(t, s.List())
	require.Equal(t, "5", s.LastStoreSyncResourceVersion(),
		"a tombstone does not know when it happened")
}

// An object without metadata leaves the store's resourceVersion as it is. A whole list has a
// resourceVersion of its own.
func TestResourceVersionOfAnObjectWithoutMetadata(t *testing.T) {
	name := func(obj any) (string, error) { return obj.(string), nil }
	ours, theirs := New(name, Options{}), clientgo.NewStore(name)
	for _, s := range []clientgo.Store{ours, theirs} {
		require.NoError(t, s.Replace([]any{"a"}, "5"))
		require.NoError(t, s.Update("b"))
		require.NoError(t, s.Delete("a"))
		require.Equal(t, "5", s.LastStoreSyncResourceVersion())
		require.Equal(t, []any{"b"}, s.List())
		require.NoError(t, s.Replace([]any{"c"}, "7"))
		require.Equal(t, "7", s.LastStoreSyncResourceVersion())
	}
}

// A Store that cannot count is listed. Every write counts.
func TestLen_CountsObjects(t *testing.T) {
	s := New(func(obj any) (string, error) { return obj.(string), nil }, Options{})
	for _, counted := range []Store{s, struct{ Store }{s}} {
		require.NoError(t, s.Replace(nil, ""))
		require.Zero(t, Len(counted))
		require.NoError(t, s.Add("a"))
		require.NoError(t, s.Add("a"))
		require.NoError(t, s.Add("b"))
		require.Equal(t, 2, Len(counted))
		require.NoError(t, s.Replace([]any{"c", "d", "e"}, "7"))
		require.Equal(t, 3, Len(counted))
		require.NoError(t, s.Delete("c"))
		require.Equal(t, 2, Len(counted))
	}
	require.NoError(t, s.Replace([]any{"a"}, "8"))
	require.Equal(t, 1, Len(struct {
		Store // nil: it is not listed
		Counter
	}{nil, s.(Counter)}))
}

// The error about an object without a key names it, but does not print what it contains.
func TestDifference_KeyErrorPrintsNoContent(t *testing.T) {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"},
		StringData: map[string]string{"password": "canary"},
	}
	fail := func(any) (string, error) { return "", errors.New("no key") }
	err := New(fail, Options{}).Add(secret)
	require.EqualError(t, err, "couldn't create key for object *v1.Secret ns/a: no key")
	require.ErrorContains(t, clientgo.NewStore(fail).Add(secret), "canary")
	err = New(MetaNamespaceKeyFunc, Options{}).Add(struct{ text string }{"canary"})
	require.ErrorContains(t, err, "couldn't create key for object struct { text string }: ")
	require.NotContains(t, err.Error(), "canary")
}
