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

// threadSafeMap is a table behind a lock, and the newest resourceVersion that reached it.
//
// Law: every holder of mu, reading or writing, sees every law of table kept. An index function that
// panics inside a write does so before the write changed anything.
//
// Source: tools/cache/thread_safe_store.go threadSafeMap
type threadSafeMap struct {
	metrics              Metrics
	ignoreObjectVersions bool

	mu              sync.RWMutex
	count           atomic.Int64 // the number of objects; mu guards only its changes
	table           *table
	resourceVersion string
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
	m.table.apply(writes)
	m.countLocked()
	if known {
		m.setResourceVersionLocked(resourceVersion)
	}
}

// replace makes the map hold exactly list. Readers see the old content until all is indexed.
func (m *threadSafeMap) replace(list items, resourceVersion string) {
	fresh := newTable(list, m.GetIndexers())
	m.mu.Lock()
	defer m.mu.Unlock()
	late := m.table.indexers() // added meanwhile; an index is never removed
	for _, x := range fresh.indices {
		delete(late, x.name)
	}
	fresh.addIndexers(late)
	m.table = fresh
	m.countLocked()
	m.setResourceVersionLocked(resourceVersion)
}

// Get finds the object stored under key.
func (m *threadSafeMap) Get(key string) (item any, exists bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.table.items.get(key)
}

// List returns every object.
func (m *threadSafeMap) List() []any {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.table.items.objects()
}

// ListKeys returns every key.
func (m *threadSafeMap) ListKeys() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.table.items.keys()
}

// Len is the number of objects. It does not wait for an index function.
func (m *threadSafeMap) Len() int {
	return int(m.count.Load())
}

func (m *threadSafeMap) countLocked() {
	if n := int64(m.table.items.len()); n != m.count.Load() { // not for an update
		m.count.Store(n)
	}
}

// GetIndexers returns a copy of the index functions.
func (m *threadSafeMap) GetIndexers() Indexers {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.table.indexers()
}

// AddIndexers adds all of newIndexers, or none.
func (m *threadSafeMap) AddIndexers(newIndexers Indexers) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := sets.KeySet(m.table.indexers()).Intersection(sets.KeySet(newIndexers))
	if len(taken) > 0 {
		return fmt.Errorf("indexer conflict: %v", taken)
	}
	m.table.addIndexers(newIndexers)
	return nil
}

// lookup returns the index called name. Its name and function never change; the caller must hold mu
// to read its sets.
func (m *threadSafeMap) lookup(name string) (*index, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.table.lookup(name)
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
	x, err := m.table.lookup(indexName)
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
	x, err := m.table.lookup(indexName)
	if err != nil {
		return nil, err
	}
	return x.keys(indexedValue), nil
}

// ListIndexFuncValues returns the values of the index. An index that does not exist has none.
func (m *threadSafeMap) ListIndexFuncValues(indexName string) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	x, err := m.table.lookup(indexName)
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
