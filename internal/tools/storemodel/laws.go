// SPDX-License-Identifier: Apache-2.0

package storemodel

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Keyless are objects without a key.
var Keyless = []any{
	nil, (*corev1.Pod)(nil), (*unstructured.Unstructured)(nil), "text", 7, struct{}{}, &struct{}{},
}

// RefusesKeyless requires that each method refuses an object without a key with an E, which names
// it, and that nothing changes.
func RefusesKeyless[E error](t *testing.T, s Unindexed, objOf func(E) any) {
	t.Helper()
	for _, bad := range Keyless {
		require.NoError(t, s.Replace([]any{Pod("ns/a rv=1")}, "1"))
		item, exists, getErr := s.Get(bad)
		require.Nil(t, item)
		require.False(t, exists)
		for what, err := range map[string]error{
			"add": s.Add(bad), "update": s.Update(bad), "delete": s.Delete(bad),
			"replace": s.Replace([]any{Pod("ns/b"), bad}, "2"), "get": getErr,
		} {
			var keyErr E
			require.ErrorAs(t, err, &keyErr, "%s %T", what, bad)
			require.Equal(t, bad, objOf(keyErr), what)
			require.ErrorContains(t, err, "couldn't create key for object")
		}
		require.Equal(t, []string{"ns/a"}, s.ListKeys())
		require.Equal(t, "1", s.LastStoreSyncResourceVersion())
	}
}

// Keyed is a store with keys that its callers compute.
type Keyed interface {
	Update(key string, obj any)
	DeleteWithObject(key string, obj any)
	Get(key string) (item any, exists bool)
	LastStoreSyncResourceVersion() string
	Resync() error
	Lookups
}

// KeyedLaws are what each store by key does. The first store has the index "node" of ByNode, the
// other no index.
var KeyedLaws = map[string]func(t *testing.T, indexed, plain Keyed){
	"takes anything":           takesAnything,
	"results are the caller's": resultsAreTheCallersOwn,
	"nothing found is not nil": nothingFoundIsNotNil,
}

// A store takes any object, also nil, which has neither values nor a version.
func takesAnything(t *testing.T, m, plain Keyed) {
	m.Update("nil", nil)
	m.Update("ns/a", Pod("ns/a node=n1"))
	m.Update("ns/a", nil) // takes it out of the indexes
	require.Empty(t, m.ListIndexFuncValues("node"))
	item, exists := m.Get("nil")
	require.True(t, exists)
	require.Nil(t, item)
	m.DeleteWithObject("ns/a", nil)
	m.DeleteWithObject("nil", nil)
	m.DeleteWithObject("nil", nil)
	require.Empty(t, m.List())
	_, exists = m.Get("nil")
	require.False(t, exists)

	plain.Update("typed nil", (*corev1.Pod)(nil))
	plain.Update("text", "text")
	require.Len(t, plain.List(), 2)
	require.Empty(t, plain.LastStoreSyncResourceVersion())
	require.NoError(t, plain.Resync())
}

// Changing a result does not change the store.
func resultsAreTheCallersOwn(t *testing.T, m, _ Keyed) {
	m.Update("ns/a", Pod("ns/a node=n1"))
	m.List()[0] = nil
	m.ListKeys()[0] = ""
	m.ListIndexFuncValues("node")[0] = ""
	for range 2 {
		keys, err := m.IndexKeys("node", "n1")
		require.NoError(t, err)
		require.Equal(t, []string{"ns/a"}, keys)
		keys[0] = ""
	}
	require.Equal(t, []string{"ns/a"}, m.ListKeys())
	require.Equal(t, []string{"n1"}, m.ListIndexFuncValues("node"))
	require.Equal(t, []string{"ns/a"}, KeysOf(m.List()))
}

// A lookup without a result returns an empty slice, not nil: it is [] in JSON.
func nothingFoundIsNotNil(t *testing.T, m, _ Keyed) {
	byIndex, err := m.ByIndex("node", "n1")
	require.NoError(t, err)
	byObject, err := m.Index("node", Pod("ns/a"))
	require.NoError(t, err)
	for _, list := range [][]any{m.List(), byIndex, byObject} {
		require.Equal(t, []any{}, list)
	}
	keys, err := m.IndexKeys("node", "n1")
	require.NoError(t, err)
	for _, list := range [][]string{
		m.ListKeys(), keys, m.ListIndexFuncValues("node"), m.ListIndexFuncValues("none"),
	} {
		require.Equal(t, []string{}, list)
	}
}
