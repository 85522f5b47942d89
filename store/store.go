// SPDX-License-Identifier: Apache-2.0

// Package store keeps objects by key, and finds them again by values computed from them.
//
//	informer -> [store] <- listers, handlers, workers
//
// Read store.go (the interfaces), key.go, tombstone.go and index.go; then how it works: table.go
// (the maps and their laws), items.go (objects by key), valueindex.go and entryset.go (one index),
// threadsafemap.go (the lock), cache.go (the keys) and transaction.go; then what is built on it:
// lister.go, typed.go, snapshot.go, ttl.go. Then run go test -v -run 'Example|Transcript' ./store.
// Goroutines: none. Locking: one RWMutex in the threadSafeMap. Index functions run under it when an
// object is stored, but not for a lookup. Key functions, transforms and expiration policies never
// run under a lock.
//
// Source: tools/cache/store.go Store, tools/cache/index.go Indexer
package store

// Store holds objects under the key that its KeyFunc computes from them.
//
// Every method is safe for concurrent use and none blocks on anything but the store's lock. Objects are shared, never
// copied: what Get and List return must not be changed by the caller.
type Store interface {
	// Add stores obj, or replaces what stands under its key.
	Add(obj any) error
	// Update does what Add does; it exists so that a caller can say what it means.
	Update(obj any) error
	// Delete removes the object that has obj's key. An absent key is no error.
	Delete(obj any) error
	// List returns every object, in no order, in a slice of the caller's own.
	List() []any
	// ListKeys returns every key, in no order.
	ListKeys() []string
	// Get finds the object that has obj's key.
	Get(obj any) (item any, exists bool, err error)
	// GetByKey finds the object stored under key.
	GetByKey(key string) (item any, exists bool, err error)
	// Replace makes the store hold exactly list, which stood on the server at resourceVersion.
	Replace(list []any, resourceVersion string) error
	// Resync exists for queues, which replay what is known. A store has nothing to do.
	Resync() error
	// Bookmark notes that the store is as new as resourceVersion although no object changed.
	Bookmark(resourceVersion string)
	// LastStoreSyncResourceVersion is the newest resourceVersion that reached the store, or "" before the first.
	LastStoreSyncResourceVersion() string
}

// Indexer is a Store that also finds objects by computed values.
type Indexer interface {
	Store
	// Index returns, each once and in no order, the objects that share an indexed value with obj under indexName.
	Index(indexName string, obj any) ([]any, error)
	// IndexKeys returns the sorted keys of the objects that have indexedValue under indexName.
	IndexKeys(indexName, indexedValue string) ([]string, error)
	// ListIndexFuncValues returns every value that occurs under indexName; none for an index that does not exist.
	ListIndexFuncValues(indexName string) []string
	// ByIndex returns, in no order, the objects that have indexedValue under indexName.
	ByIndex(indexName, indexedValue string) ([]any, error)
	// GetIndexers returns the index functions by index name.
	GetIndexers() Indexers
	// AddIndexers adds index functions and indexes what the store already holds. If one name is taken, none is added.
	AddIndexers(newIndexers Indexers) error
}

// TransformFunc changes an object before it is cached, usually to drop fields nobody reads. It must return an object of
// which the same key can be computed. It runs once for each object received, from one goroutine at a time.
type TransformFunc func(obj any) (any, error)
