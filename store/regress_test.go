// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// kubernetes/kubernetes#109115: an update from one value to several, or back, left keys under
// values that the object no longer had.
func TestRegress109115_SeveralValues(t *testing.T) {
	m := newMap(Indexers{"tag": byTag})
	want := func(foo, bar []string) {
		t.Helper()
		checkLaws(t, m)
		for value, keys := range map[string][]string{"foo": foo, "bar": bar} {
			got, err := m.IndexKeys("tag", value)
			require.NoError(t, err)
			require.Equal(t, keys, got, value)
		}
	}
	m.Update("k", pod("ns/k tags=foo"))
	want([]string{"k"}, []string{})
	m.Update("k", pod("ns/k tags=foo,bar"))
	want([]string{"k"}, []string{"k"})
	m.Update("k", pod("ns/k tags=bar"))
	want([]string{}, []string{"k"})
	m.DeleteWithObject("k", nil)
	want([]string{}, []string{})
}

// kubernetes/kubernetes#84959: values that no object had any more stayed as empty sets, and their
// number grew for ever.
func TestRegress84959_NoEmptySets(t *testing.T) {
	m := newMap(Indexers{"node": byNode})
	for i := range 10_000 {
		m.Update("k", pod(fmt.Sprintf("ns/k node=n%d", i)))
	}
	require.Equal(t, []string{"n9999"}, m.ListIndexFuncValues("node"))
	m.DeleteWithObject("k", nil)
	require.Empty(t, m.ListIndexFuncValues("node"))
	for i := range 10_000 {
		m.Update(fmt.Sprint(i), pod(fmt.Sprintf("ns/%d node=n%d", i, i)))
	}
	for i := range 10_000 {
		m.DeleteWithObject(fmt.Sprint(i), nil)
	}
	require.Empty(t, m.ListIndexFuncValues("node"))
	checkLaws(t, m)
}

// kubernetes/kubernetes#117046: indexes can be added when the store holds objects, which are
// indexed at once.
func TestRegress117046_AddIndexersToAFullStore(t *testing.T) {
	indexer := New(MetaNamespaceKeyFunc, Options{Indexers: Indexers{"node": byNode}})
	require.NoError(t, indexer.Add(pod("ns/a node=n1 tags=x")))
	require.NoError(t, indexer.AddIndexers(Indexers{"tag": byTag}))
	keys, err := indexer.IndexKeys("tag", "x")
	require.NoError(t, err)
	require.Equal(t, []string{"ns/a"}, keys)

	err = indexer.AddIndexers(Indexers{"tag": byTag, NamespaceIndex: MetaNamespaceIndexFunc})
	require.EqualError(t, err, "indexer conflict: map[tag:{}]")
	require.Equal(t, []string{"node", "tag"}, sortedKeys(indexer.GetIndexers()))
}

// kubernetes/kubernetes#50555: an index function's error was ignored, and lookups did not find the
// object.
func TestRegress50555_IndexFuncErrorPanics(t *testing.T) {
	m := newMap(Indexers{"bad": func(any) ([]string, error) { return nil, errBroken }})
	require.PanicsWithError(
		t,
		`unable to calculate an index entry for key "k" on index "bad": broken`,
		func() { m.Update("k", pod("ns/k")) },
	)
}

// kubernetes/kubernetes#113305: objects that had left the store stayed reachable. Neither a delete,
// an update, a Replace nor a transaction may keep an object alive.
func TestRegress113305_NothingPinsWhatLeft(t *testing.T) {
	indexer := New(MetaNamespaceKeyFunc, Options{Indexers: Indexers{"node": byNode, "tag": byTag}})
	var gone []weak.Pointer[corev1.Pod]
	leaves := func(text string) *corev1.Pod {
		p := pod(text)
		gone = append(gone, weak.Make(p))
		return p
	}
	require.NoError(t, indexer.Add(leaves("ns/a node=n1")))
	require.NoError(t, indexer.Delete(pod("ns/a")))
	require.NoError(t, indexer.Add(leaves("ns/b node=n1 tags=x,y")))
	require.NoError(t, indexer.Update(pod("ns/b node=n1 tags=y")))
	require.NoError(t, indexer.Replace([]any{leaves("ns/c node=n2"), leaves("ns/d node=n2")}, "1"))
	require.NoError(t, indexer.Replace([]any{pod("ns/e node=n2")}, "2"))
	require.Nil(t, indexer.(TransactionStore).Transaction(
		Transaction{
			leaves("ns/f tags=x"),
			TransactionTypeAdd,
		},
		Transaction{pod("ns/f"), TransactionTypeDelete},
	))
	runtime.GC()
	for i, p := range gone {
		require.Nil(t, p.Value(), "object %d is still reachable", i)
	}
	require.Equal(t, []string{"ns/e"}, indexer.ListKeys())
	runtime.KeepAlive(indexer)
}
