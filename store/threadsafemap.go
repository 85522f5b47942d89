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
	m := &threadSafeMap{table: newTable(0, indexers)}
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

// Replace makes the store hold exactly items.
func (m *threadSafeMap) Replace(items map[string]any, resourceVersion string) {
	list := make([]keyed, 0, len(items))
	for key, obj := range items {
		list = append(list, keyed{key, obj})
	}
	m.replace(list, resourceVersion)
}

// keyed is an object and its key.
type keyed struct {
	key string
	obj any
}

// replace makes the store hold exactly list. Readers see the old content until all is indexed.
func (m *threadSafeMap) replace(list []keyed, resourceVersion string) {
	fresh := newTable(len(list), m.GetIndexers())
	for _, k := range list {
		fresh.put(k.key, k.obj)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	late := m.table.indexers() // added meanwhile; an index is never removed
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
	x, err := m.table.lookup(indexName)
	if err != nil {
		return nil, err
	}
	return x.keys(indexedValue), nil
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
