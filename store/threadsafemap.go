// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
)

// threadSafeMap is a table behind a lock, and the resourceVersion up to which it is complete.
//
// Law: whoever holds mu, reading or writing, sees every law of table kept. An index function that panics inside a write
// does so before the write changed anything.
//
// Source: tools/cache/thread_safe_store.go threadSafeMap
type threadSafeMap struct {
	gauge  GaugeMetric // nil: nobody watches
	hidden func() bool // nil: never

	ignoreObjectVersions bool

	mu              sync.RWMutex
	table           *table
	resourceVersion string
}

var (
	_ ThreadSafeStoreWithTransaction = (*threadSafeMap)(nil)
	_ Snapshotter                    = (*threadSafeMap)(nil)
)

func newThreadSafeMap(indexers Indexers, opts ...ThreadSafeStoreOption) *threadSafeMap {
	m := &threadSafeMap{table: newTable(indexers, 0)}
	for _, opt := range opts {
		opt(m)
	}
	return m
}

// Add stores obj under key.
func (m *threadSafeMap) Add(key string, obj any) { m.Update(key, obj) }

// Update stores obj under key.
func (m *threadSafeMap) Update(key string, obj any) {
	m.Transaction(ThreadSafeStoreTransaction{Transaction{obj, TransactionTypeUpdate}, key})
}

// Delete removes what stands under key; the resourceVersion stays.
func (m *threadSafeMap) Delete(key string) { m.DeleteWithObject(key, nil) }

// DeleteWithObject removes what stands under key; the resourceVersion becomes that of obj.
func (m *threadSafeMap) DeleteWithObject(key string, obj any) {
	m.Transaction(ThreadSafeStoreTransaction{Transaction{obj, TransactionTypeDelete}, key})
}

// Transaction applies the changes in order under one lock. Index functions see all new objects before the first change.
func (m *threadSafeMap) Transaction(txns ...ThreadSafeStoreTransaction) {
	if len(txns) == 0 {
		return
	}
	resourceVersion, known := "", false
	if !m.ignoreObjectVersions {
		resourceVersion, known = resourceVersionOf(txns[len(txns)-1].Object)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.table.apply(txns)
	if known {
		m.setResourceVersionLocked(resourceVersion)
	}
}

// Replace makes the store hold exactly items. Readers go on with the old content while the new one is indexed.
func (m *threadSafeMap) Replace(items map[string]any, resourceVersion string) {
	fresh := m.prepare(len(items))
	for key, obj := range items {
		fresh.add(key, obj)
	}
	m.commit(fresh, resourceVersion)
}

// prepare returns an empty table with the same indexes, for commit.
func (m *threadSafeMap) prepare(size int) *table {
	return newTable(m.GetIndexers(), size)
}

// commit makes a table that prepare returned the content.
func (m *threadSafeMap) commit(fresh *table, resourceVersion string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	late := m.table.indexers() // since prepare; an index is never removed
	for _, x := range fresh.indices {
		delete(late, x.name)
	}
	fresh.addIndexers(late)
	m.table = fresh
	m.setResourceVersionLocked(resourceVersion)
}

// Get finds the object stored under key.
func (m *threadSafeMap) Get(key string) (item any, exists bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	it, exists := m.table.items[key]
	return it.obj, exists
}

// List returns every object.
func (m *threadSafeMap) List() []any {
	m.mu.RLock()
	defer m.mu.RUnlock()
	list := make([]any, 0, len(m.table.items))
	for i := range m.table.slots { // an array: faster than the map
		obj := m.table.slots[i].obj
		if _, isVacant := obj.(vacant); !isVacant {
			list = append(list, obj)
		}
	}
	return list
}

// ListKeys returns every key.
func (m *threadSafeMap) ListKeys() []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	keys := make([]string, 0, len(m.table.items))
	for key := range m.table.items {
		keys = append(keys, key)
	}
	return keys
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

// Resync does nothing.
func (m *threadSafeMap) Resync() error { return nil }

// Index returns the objects that share a value with obj. The index function runs before the lock is taken for good; what
// is found under its values is one moment's state.
func (m *threadSafeMap) Index(indexName string, obj any) ([]any, error) {
	indexFunc, err := m.indexFunc(indexName)
	if err != nil {
		return nil, err
	}
	values, err := indexFunc(obj)
	if err != nil {
		return nil, err
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.table.objects(indexName, values...)
}

func (m *threadSafeMap) indexFunc(name string) (IndexFunc, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	x, err := m.table.lookup(name)
	if err != nil {
		return nil, err
	}
	return x.indexFunc, nil
}

// ByIndex returns the objects that have indexedValue.
func (m *threadSafeMap) ByIndex(indexName, indexedValue string) ([]any, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.table.objects(indexName, indexedValue)
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
	return m.table.keys(indexName, indexedValue)
}

// ListIndexFuncValues returns the values of the index, none if there is no such index.
func (m *threadSafeMap) ListIndexFuncValues(indexName string) []string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	x, err := m.table.lookup(indexName)
	if err != nil {
		return []string{}
	}
	return slices.AppendSeq(make([]string, 0, len(x.sets)), maps.Keys(x.sets))
}
