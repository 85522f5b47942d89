// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/sets"

	"example.com/informerstack/internal/helpers/objects"
)

// threadSafeMap is a map of objects with indexes over it, behind a lock.
//
//	items[key]             = the entry of the object that has the key
//	entries                = the entries of items, for List: a map of them takes it twice as long
//	indices[i].sets[value] = set of the entries with an object that has the value
//
// Laws, for every holder of mu:
//
//	S1  e in indices[i].sets[v]  <=>  v in indices[i].indexFunc(e.obj)
//	S2  no set is empty
//	S3  an index function that panics inside a write does so before the write changed anything
//	S4  entries contains each entry of items once, and at most as many that were removed
//
// S1 holds as long as no stored object is changed in place. An object that was changed can stay
// under a value that it no longer has, until it is removed; a removed entry is never returned. The
// next write puts it under its new values in each index in which it has several. In an index in
// which it has one, the write does so only if the changed object did not have that value already.
//
// Source: tools/cache/thread_safe_store.go threadSafeMap
type threadSafeMap struct {
	metrics      Metrics
	knownVersion func() (resourceVersion string, known bool) // may be nil
	count        atomic.Int64                                // len(items); set under mu

	mu              sync.RWMutex
	items           map[string]*entry
	entries         []*entry
	indices         []*index
	resourceVersion string // of the last write that has one
}

// entry is an object and its key. An update changes the object in the entry, so an index leads to
// the object without a search by key. A removed entry keeps no object alive, even in a set that it
// was not taken out of.
type entry struct {
	key string
	obj any // removed{} while the entry is not in items
}

type removed struct{}

func entriesOf(items map[string]*entry) []*entry {
	return slices.AppendSeq(make([]*entry, 0, len(items)), maps.Values(items))
}

// write stores an object under its key, or removes the object that has the key.
type write struct {
	key    string
	obj    any // of a removal: the last state; only its resourceVersion counts
	remove bool
}

// apply makes writes of different keys under one lock: it computes the values of all indexes,
// stores the objects, and moves their entries in each index. The last object gives the new
// resourceVersion.
func (m *threadSafeMap) apply(writes ...write) {
	resourceVersion, known := "", false
	if m.knownVersion == nil {
		resourceVersion, known = resourceVersionOf(writes[len(writes)-1].obj)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	// The entry of each write, and its values in each index, before and after it. One write with
	// some indexes needs no memory of the heap for them.
	entries, values := make([]*entry, 0, 1), make([][]string, 0, 16)
	for _, w := range writes {
		e, newObj := m.items[w.key], w.obj
		if e == nil {
			e = &entry{w.key, removed{}}
		}
		if w.remove {
			newObj = removed{}
		}
		for _, x := range m.indices {
			values = append(values, x.valuesOf(w.key, e.obj), x.valuesOf(w.key, newObj))
		}
		entries = append(entries, e)
	}
	for i, w := range writes {
		e := entries[i]
		if w.remove {
			delete(m.items, w.key)
			*e = entry{obj: removed{}}
		} else {
			if e.obj == (removed{}) {
				m.items[w.key], m.entries = e, append(m.entries, e)
			}
			e.obj = w.obj
		}
		for _, x := range m.indices {
			x.move(e, values[0], values[1])
			values = values[2:]
		}
	}
	if len(m.entries) > 2*len(m.items) {
		m.entries = entriesOf(m.items)
	}
	m.count.Store(int64(len(m.items)))
	if known {
		m.setVersionLocked(resourceVersion)
	}
}

// replace makes the map hold exactly items. Readers see the old content until all is indexed.
func (m *threadSafeMap) replace(items map[string]*entry, resourceVersion string) {
	indices, entries := newIndices(items, m.GetIndexers()), entriesOf(items)
	m.mu.Lock()
	defer m.mu.Unlock()
	late := m.indexersLocked() // added meanwhile; an index is never removed
	for _, x := range indices {
		delete(late, x.name)
	}
	m.items, m.indices = items, append(indices, newIndices(items, late)...)
	m.entries = entries
	m.count.Store(int64(len(items)))
	m.setVersionLocked(resourceVersion)
}

// Get finds the object stored under key.
func (m *threadSafeMap) Get(key string) (item any, exists bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if e, exists := m.items[key]; exists {
		return e.obj, true
	}
	return nil, false
}

// List returns every object.
func (m *threadSafeMap) List() []any {
	m.mu.RLock()
	defer m.mu.RUnlock()
	objects := make([]any, 0, len(m.items))
	for _, e := range m.entries {
		if e.obj != (removed{}) {
			objects = append(objects, e.obj)
		}
	}
	return objects
}

// ListKeys returns every key.
func (m *threadSafeMap) ListKeys() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.AppendSeq(make([]string, 0, len(m.items)), maps.Keys(m.items))
}

// Len is the number of objects. It does not wait for an index function.
func (m *threadSafeMap) Len() int {
	return int(m.count.Load())
}

// GetIndexers returns a copy of the index functions.
func (m *threadSafeMap) GetIndexers() Indexers {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.indexersLocked()
}

func (m *threadSafeMap) indexersLocked() Indexers {
	indexers := make(Indexers, len(m.indices))
	for _, x := range m.indices {
		indexers[x.name] = x.indexFunc
	}
	return indexers
}

// AddIndexers adds all of newIndexers, or adds nothing.
func (m *threadSafeMap) AddIndexers(newIndexers Indexers) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := sets.KeySet(m.indexersLocked()).Intersection(sets.KeySet(newIndexers))
	if len(taken) > 0 {
		return fmt.Errorf("indexer conflict: %v", taken)
	}
	m.indices = append(m.indices, newIndices(m.items, newIndexers)...)
	return nil
}

// Index returns the objects that share a value with obj. The index function runs without the lock.
func (m *threadSafeMap) Index(indexName string, obj any) ([]any, error) {
	var indexFunc IndexFunc
	if err := m.read(indexName, func(x *index) { indexFunc = x.indexFunc }); err != nil {
		return nil, err
	}
	values, err := indexFunc(obj)
	if err != nil {
		return nil, err
	}
	return m.objects(indexName, values...)
}

// ByIndex returns the objects that have indexedValue.
func (m *threadSafeMap) ByIndex(indexName, indexedValue string) ([]any, error) {
	return m.objects(indexName, indexedValue)
}

func (m *threadSafeMap) objects(indexName string, values ...string) (objects []any, err error) {
	err = m.read(indexName, func(x *index) { objects = x.objects(values...) })
	return objects, err
}

// IndexKeys returns the sorted keys of the objects that have indexedValue.
func (m *threadSafeMap) IndexKeys(indexName, indexedValue string) (keys []string, err error) {
	err = m.read(indexName, func(x *index) { keys = x.keys(indexedValue) })
	slices.Sort(keys)
	return keys, err
}

// ListIndexFuncValues returns the values of the index. An index that does not exist has no values.
func (m *threadSafeMap) ListIndexFuncValues(indexName string) []string {
	values := []string{}
	_ = m.read(indexName, func(x *index) {
		values = slices.AppendSeq(make([]string, 0, len(x.sets)), maps.Keys(x.sets))
	})
	return values
}

// Resync does nothing.
func (m *threadSafeMap) Resync() error { return nil }

// Bookmark notes a new resourceVersion, without a change of any object.
func (m *threadSafeMap) Bookmark(resourceVersion string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setVersionLocked(resourceVersion)
}

// LastStoreSyncResourceVersion is the resourceVersion that reached the map last.
func (m *threadSafeMap) LastStoreSyncResourceVersion() string {
	if m.knownVersion != nil {
		if known, ok := m.knownVersion(); ok {
			return known
		}
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.resourceVersion
}

// read calls do with the index called name, under the lock.
func (m *threadSafeMap) read(name string, do func(x *index)) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	for _, x := range m.indices {
		if x.name == name {
			do(x)
			return nil
		}
	}
	return fmt.Errorf("Index with name %s does not exist", name) // callers know this text
}

func (m *threadSafeMap) setVersionLocked(resourceVersion string) {
	m.resourceVersion = resourceVersion
	if m.knownVersion != nil || m.metrics.ResourceVersion == nil {
		return
	}
	if number, ok := objects.VersionNumber(resourceVersion); ok || resourceVersion == "" {
		m.metrics.ResourceVersion(number)
	}
}

// resourceVersionOf reads the resourceVersion of an object that has metadata.
func resourceVersionOf(obj any) (resourceVersion string, known bool) {
	m, err := objects.Meta(obj)
	if err != nil {
		return "", false
	}
	return m.GetResourceVersion(), true
}

// index is one index: a function, and the entries by the values that it computes from their
// objects.
//
//	sets["node-1"] = {entry of ns/a, entry of ns/b}
//
// Source: tools/cache/index.go index
type index struct {
	name      string
	indexFunc IndexFunc
	sets      map[string]entrySet
}

// newIndices returns indexes over items.
func newIndices(items map[string]*entry, indexers Indexers) []*index {
	indices := make([]*index, 0, len(indexers))
	for name, indexFunc := range indexers {
		indices = append(indices, &index{name, indexFunc, map[string]entrySet{}})
	}
	for _, e := range items {
		for _, x := range indices {
			x.move(e, nil, x.valuesOf(e.key, e.obj))
		}
	}
	return indices
}

// valuesOf computes the values of obj; nil and removed{} have no values. An index function that
// fails is a programming error: no caller could decide what to do with the object.
func (x *index) valuesOf(key string, obj any) []string {
	if obj == nil || obj == (removed{}) {
		return nil
	}
	values, err := x.indexFunc(obj)
	if err != nil {
		const text = "unable to calculate an index entry for key %q on index %q: %w"
		panic(fmt.Errorf(text, key, x.name, err))
	}
	return values
}

// move takes e out of the sets of the old values and puts it into those of the new ones. A value
// may occur twice. Equal values prove nothing, because the old object may have been changed in
// place: only a single value, the usual one, is left where it is, as in client-go.
func (x *index) move(e *entry, oldValues, newValues []string) {
	if len(newValues) == 1 && slices.Equal(oldValues, newValues) {
		return // the usual update
	}
	for _, value := range oldValues {
		x.remove(value, e)
	}
	for _, value := range newValues {
		x.insert(value, e)
	}
}

func (x *index) insert(value string, e *entry) {
	set := x.sets[value]
	set.insert(e)
	x.sets[value] = set
}

func (x *index) remove(value string, e *entry) {
	set := x.sets[value]
	set.remove(e)
	if set.len() == 0 {
		delete(x.sets, value)
		return
	}
	x.sets[value] = set
}

// entries returns the entries that have the value, without those that were removed: see S1.
func (x *index) entries(value string) iter.Seq[*entry] {
	return func(yield func(e *entry) bool) {
		for e := range x.sets[value].each {
			if e.obj != (removed{}) && !yield(e) {
				return
			}
		}
	}
}

// objects returns, each once, the objects that have one of the values.
func (x *index) objects(values ...string) []any {
	if len(values) == 1 {
		objects := make([]any, 0, x.sets[values[0]].len())
		for e := range x.entries(values[0]) {
			objects = append(objects, e.obj)
		}
		return objects
	}
	objects, seen := []any{}, map[*entry]bool{}
	for value := range sets.New(values...) {
		for e := range x.entries(value) {
			if !seen[e] {
				seen[e] = true
				objects = append(objects, e.obj)
			}
		}
	}
	return objects
}

// keys returns the keys of the objects that have the value.
func (x *index) keys(value string) []string {
	keys := []string{}
	for e := range x.entries(value) {
		keys = append(keys, e.key)
	}
	return keys
}
