// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
)

// Snapshot is a copy of the three maps that a store with indexes is drawn with. It is for looking, in a test, a debugger
// or a debug page: making it costs as much as indexing everything again with a map for each set.
type Snapshot struct {
	Items    map[string]any // object by key
	Indexers Indexers       // function by index name
	Indices  Indices        // set of keys by index name and indexed value
}

// Snapshotter is a store that shows its maps: what New, NewIndexer and NewThreadSafeStore return.
type Snapshotter interface {
	// Snapshot copies the maps, of one moment; the objects are shared.
	Snapshot() Snapshot
}

// String writes a line for each key and for each indexed value, sorted.
func (s Snapshot) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "items:    %s\n", strings.Join(sortedKeys(s.Items), ", "))
	fmt.Fprintf(&b, "indexers: %s\n", strings.Join(sortedKeys(s.Indexers), ", "))
	for _, name := range sortedKeys(s.Indices) {
		for _, value := range sortedKeys(s.Indices[name]) {
			keys := sets.List(s.Indices[name][value])
			fmt.Fprintf(&b, "indices[%q][%q] = {%s}\n", name, value, strings.Join(keys, ", "))
		}
	}
	return b.String()
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// Snapshot copies the three maps.
func (m *threadSafeMap) Snapshot() Snapshot {
	m.mu.RLock()
	defer m.mu.RUnlock()
	t := m.table
	s := Snapshot{Items: make(map[string]any, t.items.len()), Indexers: t.indexers(), Indices: Indices{}}
	for _, key := range t.items.keys() {
		s.Items[key], _ = t.items.get(key)
	}
	for _, x := range t.indices {
		index := make(Index, len(x.sets))
		for value := range x.sets {
			index[value] = sets.New(x.keys(value)...)
		}
		s.Indices[x.name] = index
	}
	return s
}
