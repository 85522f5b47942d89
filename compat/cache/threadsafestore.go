// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"maps"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/internal/helpers/objects"
	"example.com/informerstack/store"
)

// ThreadSafeStore is an Indexer with keys that the caller computes. Every method is safe for
// concurrent use. Objects are shared, never copied: the caller must not change an object that is
// stored.
//
// An index function that fails while an object is stored is a programming error: the write panics,
// and changes nothing.
//
// Source: tools/cache/thread_safe_store.go ThreadSafeStore
type ThreadSafeStore interface {
	// Add stores obj under key, or replaces the object there.
	Add(key string, obj any)
	// Update does the same as Add.
	Update(key string, obj any)
	// Delete removes the object under key. LastStoreSyncResourceVersion stays as it is; prefer
	// DeleteWithObject.
	Delete(key string)
	// DeleteWithObject removes the object under key, and notes the resourceVersion of obj, its last
	// state.
	DeleteWithObject(key string, obj any)
	// Get finds the object stored under key.
	Get(key string) (item any, exists bool)
	// List returns every object, in no order. The caller owns the slice.
	List() []any
	// ListKeys returns every key, in no order.
	ListKeys() []string
	// Replace makes the store hold exactly items (object by key), the state of the server at
	// resourceVersion. The caller must not use the map afterwards.
	Replace(items map[string]any, resourceVersion string)
	// Index returns, each once and in no order, the objects that share an indexed value with obj
	// under indexName.
	Index(indexName string, obj any) ([]any, error)
	// IndexKeys returns the sorted keys of the objects that have indexedValue under indexName.
	IndexKeys(indexName, indexedValue string) ([]string, error)
	// ListIndexFuncValues returns every value that occurs under indexName.
	ListIndexFuncValues(indexName string) []string
	// ByIndex returns, in no order, the objects that have indexedValue under indexName.
	ByIndex(indexName, indexedValue string) ([]any, error)
	// GetIndexers returns a copy of the index functions by index name.
	GetIndexers() Indexers
	// AddIndexers adds index functions and indexes the stored objects. If one name is taken, it
	// adds no index.
	AddIndexers(newIndexers Indexers) error
	// Bookmark notes that the store is as new as resourceVersion although no object changed.
	Bookmark(resourceVersion string)
	// LastStoreSyncResourceVersion is the resourceVersion that reached the store last, or ""
	// before the first.
	LastStoreSyncResourceVersion() string
	// Resync does nothing.
	Resync() error
}

// ThreadSafeStoreWithTransaction is a ThreadSafeStore that applies many changes under one lock.
//
// Source: tools/cache/thread_safe_store.go ThreadSafeStoreWithTransaction
type ThreadSafeStoreWithTransaction interface {
	ThreadSafeStore
	// Transaction applies the changes in order. No reader sees a part of them. The last object
	// gives the new LastStoreSyncResourceVersion.
	Transaction(txns ...ThreadSafeStoreTransaction)
}

// ThreadSafeStoreTransaction is a change and its key.
//
// Source: tools/cache/thread_safe_store.go ThreadSafeStoreTransaction
type ThreadSafeStoreTransaction struct {
	Transaction
	Key string
}

// ThreadSafeStoreOption configures NewThreadSafeStore.
type ThreadSafeStoreOption = func(*threadSafeMap)

// WithThreadSafeStoreMetrics is WithStoreMetrics for a ThreadSafeStore.
//
// Source: tools/cache/thread_safe_store.go WithThreadSafeStoreMetrics
func WithThreadSafeStoreMetrics(
	identifier InformerNameAndResource, metricsProvider InformerMetricsProvider,
) ThreadSafeStoreOption {
	return func(m *threadSafeMap) { m.metrics = storeMetrics(identifier, metricsProvider) }
}

// NewThreadSafeStore returns an empty ThreadSafeStoreWithTransaction. The content of indices is not
// used.
//
// Source: tools/cache/thread_safe_store.go NewThreadSafeStore
func NewThreadSafeStore(
	indexers Indexers, indices Indices, opts ...ThreadSafeStoreOption,
) ThreadSafeStore {
	m := &threadSafeMap{}
	for _, opt := range opts {
		opt(m)
	}
	m.init(indexers)
	return m
}

// threadSafeMap is a store of the core that holds pairs: an object and the key that the caller gave
// it. A pair takes 32 bytes, which an Indexer does not need.
type threadSafeMap struct {
	*cache  // of pairs
	metrics store.Metrics

	mu       sync.Mutex
	indexers Indexers // the functions that the indexes of pairs call
}

var _ ThreadSafeStoreWithTransaction = (*threadSafeMap)(nil)

func (m *threadSafeMap) init(indexers Indexers) {
	m.cache = newCache(store.New(keyOfPair, store.Options{
		Indexers: pairIndexers(indexers), Metrics: m.metrics,
	}))
	m.indexers = Indexers{}
	maps.Copy(m.indexers, indexers)
}

// pair is an object under a key. Its metadata is that of the object.
type pair struct {
	key string
	obj any
}

// GetObjectMeta implements metav1.ObjectMetaAccessor. It returns nil if the object has no metadata.
func (p pair) GetObjectMeta() metav1.Object {
	m, err := objects.Meta(p.obj)
	if err != nil {
		return nil
	}
	return m
}

func keyOfPair(obj any) (string, error) { return obj.(pair).key, nil }

// pairIndexers returns functions that compute the values of the object in a pair, or, for a lookup,
// of an object itself. A stored nil has no values.
func pairIndexers(indexers Indexers) Indexers {
	converted := make(Indexers, len(indexers))
	for name, indexFunc := range indexers {
		converted[name] = func(obj any) ([]string, error) {
			p, stored := obj.(pair)
			switch {
			case !stored:
				return indexFunc(obj)
			case p.obj == nil:
				return nil, nil
			}
			return indexFunc(p.obj)
		}
	}
	return converted
}

// objectsOf replaces the pairs in list by their objects.
func objectsOf(list []any) []any {
	for i := range list {
		list[i] = list[i].(pair).obj
	}
	return list
}

// Add implements ThreadSafeStore.
func (m *threadSafeMap) Add(key string, obj any) { m.Update(key, obj) }

// Update implements ThreadSafeStore.
func (m *threadSafeMap) Update(key string, obj any) { _ = m.cache.Update(pair{key, obj}) }

// Delete implements ThreadSafeStore.
func (m *threadSafeMap) Delete(key string) { m.DeleteWithObject(key, nil) }

// DeleteWithObject implements ThreadSafeStore.
func (m *threadSafeMap) DeleteWithObject(key string, obj any) {
	_ = m.cache.Delete(pair{key, obj})
}

// Transaction implements ThreadSafeStoreWithTransaction. A change of an unknown type is left out.
func (m *threadSafeMap) Transaction(txns ...ThreadSafeStoreTransaction) {
	pairs := make([]Transaction, len(txns))
	for i, txn := range txns {
		pairs[i] = Transaction{Object: pair{txn.Key, txn.Object}, Type: txn.Type}
	}
	m.cache.Transaction(pairs...)
}

// Get implements ThreadSafeStore.
func (m *threadSafeMap) Get(key string) (item any, exists bool) {
	item, exists, _ = m.cache.GetByKey(key)
	if !exists {
		return nil, false
	}
	return item.(pair).obj, true
}

// List implements ThreadSafeStore.
func (m *threadSafeMap) List() []any { return objectsOf(m.cache.List()) }

// Replace implements ThreadSafeStore.
func (m *threadSafeMap) Replace(items map[string]any, resourceVersion string) {
	pairs := make([]any, 0, len(items))
	for key, obj := range items {
		pairs = append(pairs, pair{key, obj})
	}
	_ = m.cache.Replace(pairs, resourceVersion)
}

// Index implements ThreadSafeStore.
func (m *threadSafeMap) Index(indexName string, obj any) ([]any, error) {
	list, err := m.cache.Index(indexName, obj)
	return objectsOf(list), err
}

// ByIndex implements ThreadSafeStore.
func (m *threadSafeMap) ByIndex(indexName, indexedValue string) ([]any, error) {
	list, err := m.cache.ByIndex(indexName, indexedValue)
	return objectsOf(list), err
}

// GetIndexers implements ThreadSafeStore.
func (m *threadSafeMap) GetIndexers() Indexers {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.indexers)
}

// AddIndexers implements ThreadSafeStore.
func (m *threadSafeMap) AddIndexers(newIndexers Indexers) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.cache.AddIndexers(pairIndexers(newIndexers)); err != nil {
		return err
	}
	maps.Copy(m.indexers, newIndexers)
	return nil
}
