// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/internal/tools/storemodel"
)

var (
	pod    = storemodel.Pod
	byNode = storemodel.ByNode
	byTag  = storemodel.ByTag
	keysOf = storemodel.KeysOf
)

// checkLaws checks the laws of threadSafeMap and entrySet.
func checkLaws(t testing.TB, m *threadSafeMap) {
	t.Helper()
	m.mu.RLock()
	defer m.mu.RUnlock()
	require.Equal(t, len(m.items), m.Len())
	for key, e := range m.items {
		require.NotEqual(t, removed{}, e.obj)
		require.Equal(t, key, e.key)
		require.Same(t, unsafe.StringData(key), unsafe.StringData(e.key), "one string for %q", key)
	}
	present := map[*entry]bool{}
	for _, e := range m.entries {
		if e.obj != (removed{}) {
			require.False(t, present[e], "S4: %q twice", e.key)
			require.Same(t, m.items[e.key], e, "S4")
			present[e] = true
		}
	}
	require.Len(t, m.items, len(present), "S4")
	require.LessOrEqual(t, len(m.entries), 2*len(present), "S4")
	for _, x := range m.indices {
		want := map[string]map[*entry]bool{}
		for _, e := range m.items {
			for _, value := range x.valuesOf(e.key, e.obj) {
				if want[value] == nil {
					want[value] = map[*entry]bool{}
				}
				want[value][e] = true
			}
		}
		got := map[string]map[*entry]bool{}
		for value, set := range x.sets {
			got[value] = checkEntrySet(t, &set)
			require.NotEmpty(t, got[value], "S2: index %s, value %q", x.name, value)
		}
		require.Equal(t, want, got, "S1: index %s", x.name)
	}
}

func newMap(indexers Indexers) *threadSafeMap {
	return &threadSafeMap{items: map[string]*entry{}, indices: newIndices(nil, indexers)}
}

func (m *threadSafeMap) Update(key string, obj any) { m.apply(write{key: key, obj: obj}) }

func (m *threadSafeMap) DeleteWithObject(key string, obj any) {
	m.apply(write{key: key, obj: obj, remove: true})
}

// replaceBy makes m hold exactly the objects in list, as cache.Replace does.
func replaceBy(m *threadSafeMap, list []entry, resourceVersion string) {
	items := map[string]*entry{}
	for _, e := range list {
		items[e.key] = &e
	}
	m.replace(items, resourceVersion)
}

// lawsOf returns the part of a store that has laws.
func lawsOf(s Store) *threadSafeMap { return &s.(*cache).threadSafeMap }

// snapshot writes a line for each key and for each indexed value, sorted.
func snapshot(m *threadSafeMap) string {
	var b strings.Builder
	keys := m.ListKeys()
	slices.Sort(keys)
	fmt.Fprintf(&b, "items: %v\n", keys)
	for _, name := range sortedKeys(m.GetIndexers()) {
		values := m.ListIndexFuncValues(name)
		slices.Sort(values)
		for _, value := range values {
			fmt.Fprintf(&b, "indices[%q][%q] = %v\n", name, value, first(m.IndexKeys(name, value)))
		}
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
