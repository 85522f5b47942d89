// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"slices"

	"example.com/informerstack/store"
)

// What an index is made of. Each is the type of package store.
type (
	// Indexer is a Store that finds objects by computed values.
	Indexer = store.Indexer
	// IndexFunc computes the values of an object in one index.
	IndexFunc = store.IndexFunc
	// Indexers holds index functions by index name.
	Indexers = store.Indexers
	// Indices holds indexes by name.
	Indices = store.Indices

	// TypedIndexer is an Indexer of objects of one type.
	TypedIndexer[T any] = store.TypedIndexer[T]
	// TypedIndexFunc is an IndexFunc for objects of one type.
	TypedIndexFunc[T any] = store.TypedIndexFunc[T]
	// TypedIndexers holds typed index functions by index name.
	TypedIndexers[T any] = store.TypedIndexers[T]

	// ThreadSafeStore is what an Indexer is made of: the caller names the keys.
	ThreadSafeStore = store.ThreadSafeStore
	// ThreadSafeStoreWithTransaction is a ThreadSafeStore that applies many changes at once.
	ThreadSafeStoreWithTransaction = store.ThreadSafeStoreWithTransaction
	// ThreadSafeStoreTransaction is one of them.
	ThreadSafeStoreTransaction = store.ThreadSafeStoreTransaction
	// ThreadSafeStoreOption changes how NewThreadSafeStore builds a store.
	ThreadSafeStoreOption = store.ThreadSafeStoreOption
)

// NamespaceIndex is the usual name of the index by namespace.
const NamespaceIndex string = store.NamespaceIndex

// MetaNamespaceIndexFunc is the usual function of that index. Beside an error it returns the value
// "", as client-go does.
//
// Source: tools/cache/index.go MetaNamespaceIndexFunc
func MetaNamespaceIndexFunc(obj any) ([]string, error) {
	values, err := store.MetaNamespaceIndexFunc(obj)
	if err != nil {
		return []string{""}, err
	}
	return values, nil
}

// IndexFuncToKeyFuncAdapter makes a KeyFunc of an index function that computes exactly one value.
//
// Source: tools/cache/index.go IndexFuncToKeyFuncAdapter
func IndexFuncToKeyFuncAdapter(indexFunc IndexFunc) KeyFunc {
	return store.IndexFuncToKeyFuncAdapter(indexFunc)
}

// TypedIndexersToIndexers wraps typed index functions for an Indexer.
//
// Source: tools/cache/index.go TypedIndexersToIndexers
func TypedIndexersToIndexers[T any](indexers TypedIndexers[T]) Indexers {
	return store.TypedIndexersToIndexers(indexers)
}

// TypedIndexerFuncToIndexerFunc wraps a typed index function for an Indexer.
//
// Source: tools/cache/index.go TypedIndexerFuncToIndexerFunc
func TypedIndexerFuncToIndexerFunc[T any](indexer TypedIndexFunc[T]) IndexFunc {
	return store.TypedIndexerFuncToIndexerFunc(indexer)
}

// NewThreadSafeStore returns an empty store. What indices holds is not used.
//
// Source: tools/cache/thread_safe_store.go NewThreadSafeStore
func NewThreadSafeStore(indexers Indexers, indices Indices, opts ...ThreadSafeStoreOption) ThreadSafeStore {
	opts = append(slices.Clip(opts), store.WithThreadSafeStoreResourceVersionHidden(hideResourceVersion))
	return store.NewThreadSafeStore(indexers, indices, opts...)
}

// WithThreadSafeStoreMetrics is WithStoreMetrics for a ThreadSafeStore.
//
// Source: tools/cache/thread_safe_store.go WithThreadSafeStoreMetrics
func WithThreadSafeStoreMetrics(identifier InformerNameAndResource, metricsProvider InformerMetricsProvider) ThreadSafeStoreOption {
	return store.WithThreadSafeStoreMetrics(storeMetric(identifier, metricsProvider))
}
