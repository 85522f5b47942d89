// SPDX-License-Identifier: Apache-2.0

package store

// ThreadSafeStore is what an Indexer is made of: the same map with indexes, whose caller names the keys.
//
// Every method is safe for concurrent use. Objects are shared, never copied: a caller must not change what it put in or
// got out, neither for the other readers' sake nor for the indexes', which are computed when an object is stored.
//
// An index function that fails while something is written is a programming error: the write panics, and has changed
// nothing.
//
// Source: tools/cache/thread_safe_store.go ThreadSafeStore
type ThreadSafeStore interface {
	// Add stores obj under key, whether or not something stood there.
	Add(key string, obj any)
	// Update does what Add does.
	Update(key string, obj any)
	// Delete removes what stands under key and leaves LastStoreSyncResourceVersion behind; prefer DeleteWithObject.
	Delete(key string)
	// DeleteWithObject removes what stands under key, and notes the resourceVersion of obj, the state at the delete.
	DeleteWithObject(key string, obj any)
	// Get finds the object stored under key.
	Get(key string) (item any, exists bool)
	// List returns every object, in no order, in a slice of the caller's own.
	List() []any
	// ListKeys returns every key, in no order.
	ListKeys() []string
	// Replace makes the store hold exactly items (object by key), which stood on the server at resourceVersion.
	// The caller must not use the map afterwards.
	Replace(items map[string]any, resourceVersion string)
	// Index returns, each once and in no order, the objects that share an indexed value with obj under indexName.
	Index(indexName string, obj any) ([]any, error)
	// IndexKeys returns the sorted keys of the objects that have indexedValue under indexName.
	IndexKeys(indexName, indexedValue string) ([]string, error)
	// ListIndexFuncValues returns every value that occurs under indexName; none for an index that does not exist.
	ListIndexFuncValues(indexName string) []string
	// ByIndex returns, in no order, the objects that have indexedValue under indexName.
	ByIndex(indexName, indexedValue string) ([]any, error)
	// GetIndexers returns the index functions by index name, in a map of the caller's own.
	GetIndexers() Indexers
	// AddIndexers adds index functions and indexes what the store already holds. If one name is taken, none is added.
	AddIndexers(newIndexers Indexers) error
	// Bookmark notes that the store is as new as resourceVersion although no object changed.
	Bookmark(resourceVersion string)
	// LastStoreSyncResourceVersion is the newest resourceVersion that reached the store, or "" before the first.
	LastStoreSyncResourceVersion() string
	// Resync does nothing.
	Resync() error
}

// ThreadSafeStoreWithTransaction is a ThreadSafeStore that applies many changes under one lock.
//
// Source: tools/cache/thread_safe_store.go ThreadSafeStoreWithTransaction
type ThreadSafeStoreWithTransaction interface {
	ThreadSafeStore
	// Transaction applies the changes in order. No reader sees a part of them. The last one's object gives the new
	// LastStoreSyncResourceVersion.
	Transaction(txns ...ThreadSafeStoreTransaction)
}

// ThreadSafeStoreTransaction is one change and the key it changes.
//
// Source: tools/cache/thread_safe_store.go ThreadSafeStoreTransaction
type ThreadSafeStoreTransaction struct {
	Transaction
	Key string
}

// ThreadSafeStoreOption changes how NewThreadSafeStore builds a store.
type ThreadSafeStoreOption = func(*threadSafeMap)

// WithThreadSafeStoreMetrics reports each new LastStoreSyncResourceVersion to gauge.
func WithThreadSafeStoreMetrics(gauge GaugeMetric) ThreadSafeStoreOption {
	return func(m *threadSafeMap) { m.gauge = gauge }
}

// WithThreadSafeStoreResourceVersionHidden is WithResourceVersionHidden for a ThreadSafeStore.
func WithThreadSafeStoreResourceVersionHidden(hidden func() bool) ThreadSafeStoreOption {
	return func(m *threadSafeMap) { m.hidden = hidden }
}

// NewThreadSafeStore returns an empty store. An index says what the items say, and there are none yet, so indices should be
// Indices{}; what it holds is not used.
//
// The result is also a ThreadSafeStoreWithTransaction and a Snapshotter.
func NewThreadSafeStore(indexers Indexers, indices Indices, opts ...ThreadSafeStoreOption) ThreadSafeStore {
	return newThreadSafeMap(indexers, opts...)
}
