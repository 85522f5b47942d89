// SPDX-License-Identifier: Apache-2.0

// Package store keeps objects by key, and finds them again by values computed from them.
//
//	informer -> [store] <- listers, handlers, workers
//
// To use it, make an [Indexer] with [New], a key function and [Indexers]. An informer makes its own
// store. A [Lister] reads it, with typed methods and NotFound errors.
//
// Read store.go (the interfaces) and key.go; then how it works: threadsafemap.go (the objects, the
// indexes and the lock), cache.go (the keys) and transaction.go; then lister.go, typed.go and
// owner.go, which read a store. Then run go test -v -run 'Example|Transcript' ./store.
//
// Goroutines: none. Locking: one RWMutex in the threadSafeMap. Index functions run under it when an
// object is stored, but not for a lookup. Key functions never run under a lock.
//
// Source: tools/cache/store.go Store, tools/cache/index.go Indexer
package store

// Store holds each object under the key that its KeyFunc computes.
//
// Every method is safe for concurrent use, and waits for nothing except the store's lock. Objects
// are shared, never copied: the caller must not change the results of Get and List.
type Store interface {
	// Add stores obj, or replaces the object that has its key.
	Add(obj any) error
	// Update does the same as Add. Callers use it for objects that they know to be stored.
	Update(obj any) error
	// Delete removes the object that has obj's key. An absent key is no error.
	Delete(obj any) error
	// List returns every object, in no order. The caller owns the slice.
	List() []any
	// ListKeys returns every key, in no order.
	ListKeys() []string
	// Get finds the object that has obj's key.
	Get(obj any) (item any, exists bool, err error)
	// GetByKey finds the object stored under key.
	GetByKey(key string) (item any, exists bool, err error)
	// Replace makes the store hold exactly list, the state of the server at resourceVersion.
	Replace(list []any, resourceVersion string) error
	// Resync does nothing. It exists for queues, which replay the known objects.
	Resync() error
	// Bookmark notes that the store is as new as resourceVersion although no object changed.
	Bookmark(resourceVersion string)
	// LastStoreSyncResourceVersion is the resourceVersion that reached the store last, or ""
	// before the first.
	LastStoreSyncResourceVersion() string
}

// Indexer is a Store that also finds objects by computed values.
//
// An index function that fails while an object is stored is a programming error: the write panics,
// and changes nothing.
type Indexer interface {
	Store
	// Index returns the objects that share an indexed value with obj under indexName, each once and
	// in no order.
	Index(indexName string, obj any) ([]any, error)
	// IndexKeys returns the sorted keys of the objects that have indexedValue under indexName.
	IndexKeys(indexName, indexedValue string) ([]string, error)
	// ListIndexFuncValues returns every value that occurs under indexName. An index that does not
	// exist has no values.
	ListIndexFuncValues(indexName string) []string
	// ByIndex returns, in no order, the objects that have indexedValue under indexName.
	ByIndex(indexName, indexedValue string) ([]any, error)
	// GetIndexers returns a copy of the index functions by index name.
	GetIndexers() Indexers
	// AddIndexers adds index functions and indexes the objects that the store holds. If one name is
	// taken, it adds no index.
	AddIndexers(newIndexers Indexers) error
}

// IndexFunc computes the values of an object in one index: zero, one or several. It must compute
// the same values from the same object every time, and must not call the store.
//
// Source: tools/cache/index.go IndexFunc
type IndexFunc func(obj any) ([]string, error)

// Indexers holds the index functions by index name.
//
//	indexers["byNode"](pod ns/a) = ["node-1"]
//
// Source: tools/cache/index.go Indexers
type Indexers map[string]IndexFunc

// Counter is a Store that counts its objects without listing them. The result of New is a Counter.
// A type that wraps a Store should be a Counter, too.
type Counter interface {
	// Len is the number of objects.
	Len() int
}

// Len is the number of objects in s. It lists the keys if s is not a Counter.
func Len(s Store) int {
	if counter, ok := s.(Counter); ok {
		return counter.Len()
	}
	return len(s.ListKeys())
}

// TransformFunc changes an object before it is cached, usually to drop fields that no reader needs.
// The result must have the same key. It runs once for each object received, in one goroutine at a
// time.
type TransformFunc func(obj any) (any, error)
