// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/util/sets"

	"example.com/informerstack/internal/objects"
)

// threadSafeMap is a map of objects with indexes over it, behind a lock.
//
//	items[key]                       = object, and its entry if there are indexes
//	indices[index name].sets[value]  = set of entries; an entry is a key and its object
//
// Laws, for every holder of mu:
//
//	S1  e in indices[i].sets[v]  <=>  v in indices[i].indexFunc(e.obj)
//	S2  no set is empty
//	S3  items[k].entry is nil if there are no indexes; otherwise it is {k, items[k].obj}
//	S4  list holds each entry of items once, and at most as many removed entries
//
// S1 holds as long as no stored object is changed in place. An object that was changed can stay
// under a value that it no longer has, until it is removed; a removed entry is never returned. An
// index function that panics inside a write does so before the write changed anything.
//
// Source: tools/cache/thread_safe_store.go threadSafeMap
type threadSafeMap struct {
	metrics              Metrics
	ignoreObjectVersions bool

	mu              sync.RWMutex
	count           atomic.Int64 // the number of objects; mu guards only its changes
	items           map[string]item
	list            []*entry // makes List three times as fast as a walk through the map
	indices         []*index
	resourceVersion string // the newest that reached the map
}

// item is a stored object. It is next to its entry to save reads and updates a cache miss.
type item struct {
	obj   any
	entry *entry
}

// entry is an object and its key, for the sets of the indexes. An update changes the object in the
// entry. A removed entry holds removed{} and keeps no object alive, even in a set that it was not
// taken out of.
type entry struct {
	key string
	obj any
}

type removed struct{}

func (e *entry) isRemoved() bool {
	_, is := e.obj.(removed)
	return is
}

// write stores an object under its key, or removes the object that has the key.
type write struct {
	key    string
	obj    any // of a removal: the last state, of which only the resourceVersion counts
	remove bool
}

// apply makes the writes in order under one lock. The last object gives the new resourceVersion.
func (m *threadSafeMap) apply(writes ...write) {
	if len(writes) == 0 {
		return
	}
	resourceVersion, known := "", false
	if !m.ignoreObjectVersions {
		resourceVersion, known = resourceVersionOf(writes[len(writes)-1].obj)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var buffer [8][]string // saves an allocation for one write and up to four indexes
	values := m.appendValuesLocked(buffer[:0], writes)
	for i := range writes {
		e := m.storeLocked(&writes[i])
		for _, x := range m.indices {
			x.move(e, values[0], values[1])
			values = values[2:]
		}
	}
	m.count.Store(int64(len(m.items)))
	if known {
		m.setResourceVersionLocked(resourceVersion)
	}
}

// appendValuesLocked appends, for each write and each index, the values of the object under the key
// before the write, and those after it. So all index functions run before the first write.
func (m *threadSafeMap) appendValuesLocked(values [][]string, writes []write) [][]string {
	if len(m.indices) == 0 {
		return values
	}
	var written map[string]any // the objects after the writes so far; nil if there is one write
	if len(writes) > 1 {
		written = make(map[string]any, len(writes))
	}
	for i := range writes {
		w := &writes[i]
		oldObj, again := written[w.key]
		if !again {
			oldObj = m.items[w.key].obj
		}
		newObj := w.obj
		if w.remove {
			newObj = nil
		}
		for _, x := range m.indices {
			values = append(values, x.valuesOf(w.key, oldObj), x.valuesOf(w.key, newObj))
		}
		if written != nil {
			written[w.key] = newObj
		}
	}
	return values
}

// storeLocked makes a write in items and list. It returns the entry, or nil if there is none.
func (m *threadSafeMap) storeLocked(w *write) *entry {
	e := m.items[w.key].entry
	switch {
	case w.remove:
		delete(m.items, w.key)
		if e != nil {
			*e = entry{obj: removed{}}
			m.compactLocked()
		}
		return e
	case len(m.indices) == 0:
		m.items[w.key] = item{obj: w.obj}
		return nil
	case e == nil:
		e = &entry{}
		m.list = append(m.list, e)
	}
	*e = entry{w.key, w.obj} // also the key: the map keeps this string too, and frees the old one
	m.items[w.key] = item{w.obj, e}
	return e
}

// compactLocked takes the removed entries out of list when they are more than half of it.
func (m *threadSafeMap) compactLocked() {
	if len(m.list) > 2*len(m.items) {
		m.list = slices.AppendSeq(make([]*entry, 0, len(m.items)), m.entries)
	}
}

// entries calls yield for each entry, in no order. The caller holds mu.
func (m *threadSafeMap) entries(yield func(e *entry) bool) {
	for _, e := range m.list {
		if !e.isRemoved() && !yield(e) {
			return
		}
	}
}

// replace makes the map hold exactly list. Readers see the old content until all is indexed.
func (m *threadSafeMap) replace(list map[string]item, resourceVersion string) {
	fresh := threadSafeMap{items: list}
	fresh.addIndexersLocked(m.GetIndexers())
	m.mu.Lock()
	defer m.mu.Unlock()
	late := m.indexersLocked() // added meanwhile; an index is never removed
	for _, x := range fresh.indices {
		delete(late, x.name)
	}
	fresh.addIndexersLocked(late)
	m.items, m.list, m.indices = fresh.items, fresh.list, fresh.indices
	m.count.Store(int64(len(m.items)))
	m.setResourceVersionLocked(resourceVersion)
}

// Get finds the object stored under key.
func (m *threadSafeMap) Get(key string) (item any, exists bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	it, exists := m.items[key]
	return it.obj, exists
}

// List returns every object.
func (m *threadSafeMap) List() []any {
	m.mu.RLock()
	defer m.mu.RUnlock()
	objects := make([]any, 0, len(m.items))
	if len(m.indices) == 0 {
		for _, it := range m.items {
			objects = append(objects, it.obj)
		}
		return objects
	}
	for e := range m.entries {
		objects = append(objects, e.obj)
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

// AddIndexers adds all of newIndexers, or none.
func (m *threadSafeMap) AddIndexers(newIndexers Indexers) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := sets.KeySet(m.indexersLocked()).Intersection(sets.KeySet(newIndexers))
	if len(taken) > 0 {
		return fmt.Errorf("indexer conflict: %v", taken)
	}
	m.addIndexersLocked(newIndexers)
	return nil
}

// addIndexersLocked adds indexes under names that are not taken, and indexes the objects. It
// changes nothing if an index function panics.
func (m *threadSafeMap) addIndexersLocked(indexers Indexers) {
	if len(indexers) == 0 {
		return
	}
	list := m.list
	if len(m.indices) == 0 { // the first indexes: each object gets an entry
		list = make([]*entry, 0, len(m.items))
		for key, it := range m.items {
			list = append(list, &entry{key, it.obj})
		}
	}
	added := make([]*index, 0, len(indexers))
	for name, indexFunc := range indexers {
		added = append(added, &index{name, indexFunc, map[string]entrySet{}})
	}
	for _, e := range list {
		if e.isRemoved() {
			continue
		}
		for _, x := range added {
			x.move(e, nil, x.valuesOf(e.key, e.obj))
		}
	}
	if len(m.indices) == 0 { // only now: no index function has panicked
		for _, e := range list {
			m.items[e.key] = item{e.obj, e}
		}
	}
	m.list, m.indices = list, append(m.indices, added...)
}

// lookup returns the index called name. Its name and function never change; the caller must hold mu
// to read its sets.
func (m *threadSafeMap) lookup(name string) (*index, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.lookupLocked(name)
}

func (m *threadSafeMap) lookupLocked(name string) (*index, error) {
	for _, x := range m.indices { // a handful: faster than a map
		if x.name == name {
			return x, nil
		}
	}
	return nil, fmt.Errorf("Index with name %s does not exist", name) // callers know this text
}

// Index returns the objects that share a value with obj. The index function runs without the lock.
func (m *threadSafeMap) Index(indexName string, obj any) ([]any, error) {
	x, err := m.lookup(indexName)
	if err != nil {
		return nil, err
	}
	values, err := x.indexFunc(obj)
	if err != nil {
		return nil, err
	}
	return m.objects(indexName, values...)
}

// ByIndex returns the objects that have indexedValue.
func (m *threadSafeMap) ByIndex(indexName, indexedValue string) ([]any, error) {
	return m.objects(indexName, indexedValue)
}

func (m *threadSafeMap) objects(indexName string, values ...string) ([]any, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	x, err := m.lookupLocked(indexName)
	if err != nil {
		return nil, err
	}
	return x.objectsOfAny(values), nil
}

// IndexKeys returns the sorted keys of the objects that have indexedValue.
func (m *threadSafeMap) IndexKeys(indexName, indexedValue string) ([]string, error) {
	keys, err := m.indexKeys(indexName, indexedValue)
	slices.Sort(keys)
	return keys, err
}

func (m *threadSafeMap) indexKeys(indexName, indexedValue string) ([]string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	x, err := m.lookupLocked(indexName)
	if err != nil {
		return nil, err
	}
	return x.keys(indexedValue), nil
}

// ListIndexFuncValues returns the values of the index. An index that does not exist has none.
func (m *threadSafeMap) ListIndexFuncValues(indexName string) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	x, err := m.lookupLocked(indexName)
	if err != nil {
		return []string{}
	}
	return slices.AppendSeq(make([]string, 0, len(x.sets)), maps.Keys(x.sets))
}

// Resync does nothing.
func (m *threadSafeMap) Resync() error { return nil }

// Bookmark notes a resourceVersion at which no object changed.
func (m *threadSafeMap) Bookmark(resourceVersion string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.setResourceVersionLocked(resourceVersion)
}

// LastStoreSyncResourceVersion is the newest resourceVersion that reached the map.
func (m *threadSafeMap) LastStoreSyncResourceVersion() string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.resourceVersion
}

func (m *threadSafeMap) setResourceVersionLocked(resourceVersion string) {
	m.resourceVersion = resourceVersion
	if m.metrics.ResourceVersion == nil {
		return
	}
	if number, ok := objects.VersionNumber(resourceVersion); ok || resourceVersion == "" {
		m.metrics.ResourceVersion(number)
	}
}

// resourceVersionOf reads the resourceVersion of an object that has metadata.
func resourceVersionOf(obj any) (resourceVersion string, known bool) {
	if obj == nil {
		return "", false
	}
	m, err := objects.Meta(obj)
	if err != nil {
		return "", false
	}
	return m.GetResourceVersion(), true
}
