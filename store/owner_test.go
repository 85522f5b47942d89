// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/store"
)

// ownedBy returns a ConfigMap with an owner that does not control it, and one that does.
func ownedBy(name, apiVersion, kind, owner, uid string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name,
		OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "Secret", Name: "other", UID: "other"},
			{APIVersion: apiVersion, Kind: kind, Name: owner, UID: types.UID(uid),
				Controller: new(true)},
		}}}
}

func TestOwnerIndex_FindsTheChildrenOfOneOwner(t *testing.T) {
	objects := store.New(store.MetaNamespaceKeyFunc,
		store.Options{Indexers: store.Indexers{store.OwnerIndex: store.OwnerIndexFunc}})
	require.NoError(t, objects.Add(ownedBy("a", "example.com/v1", "Website", "shop", "1")))
	require.NoError(t, objects.Add(ownedBy("b", "example.com/v1", "Website", "shop", "2")))
	require.NoError(t, objects.Add(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "free"}}))

	found, err := store.NewTypedIndexer[*corev1.ConfigMap](objects).ByTypedIndex(
		store.OwnerIndex, "2")
	require.NoError(t, err)
	require.Len(t, found, 1)
	assert.Equal(t, "b", found[0].Name)
	assert.ElementsMatch(t, []string{"1", "2"}, objects.ListIndexFuncValues(store.OwnerIndex))
	_, err = store.OwnerIndexFunc("no object")
	assert.Error(t, err)
}

func TestOwnerNames(t *testing.T) {
	names := store.OwnerNames(schema.GroupKind{Group: "example.com", Kind: "Website"})
	shop := []store.ObjectName{{Namespace: "ns", Name: "shop"}}
	owned := ownedBy("a", "example.com/v1", "Website", "shop", "1")
	for _, test := range []struct {
		name string
		obj  any
		want []store.ObjectName
	}{
		{"owned", owned, shop},
		{"another version", ownedBy("a", "example.com/v2", "Website", "shop", "1"), shop},
		{"another group", ownedBy("a", "example.org/v1", "Website", "shop", "1"), nil},
		{"another kind", ownedBy("a", "example.com/v1", "Blog", "shop", "1"), nil},
		{"no owner", &corev1.ConfigMap{}, nil},
		{"tombstone", store.DeletedFinalStateUnknown{Key: "ns/a", Obj: owned}, shop},
		{"empty tombstone", store.DeletedFinalStateUnknown{Key: "ns/a"}, nil},
	} {
		got, err := names(test.obj)
		assert.NoError(t, err, test.name)
		assert.Equal(t, test.want, got, test.name)
	}
	_, err := names("no object")
	assert.Error(t, err)
}
