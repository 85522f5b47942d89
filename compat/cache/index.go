// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"

	"example.com/informerstack/store"
)

// The parts of an index. Each is the type of package store.
type (
	// Indexer is a Store that finds objects by computed values.
	Indexer = store.Indexer
	// IndexFunc computes the values of an object in one index.
	IndexFunc = store.IndexFunc
	// Indexers holds index functions by index name.
	Indexers = store.Indexers

	// TypedIndexer is an Indexer of objects of one type.
	TypedIndexer[T any] = store.TypedIndexer[T]
	// TypedIndexFunc is an IndexFunc for objects of one type.
	TypedIndexFunc[T any] = store.TypedIndexFunc[T]
	// TypedIndexers holds typed index functions by index name.
	TypedIndexers[T any] = store.TypedIndexers[T]
)

// Indices holds the keys of objects by index name and indexed value.
//
// Source: tools/cache/index.go Indices
type Indices map[string]index

type index map[string]sets.Set[string]

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

// IndexFuncToKeyFuncAdapter returns a KeyFunc that computes the only value of an index function. No
// value, or more than one, is an error.
//
// Source: tools/cache/index.go IndexFuncToKeyFuncAdapter
func IndexFuncToKeyFuncAdapter(indexFunc IndexFunc) KeyFunc {
	return func(obj any) (string, error) {
		values, err := indexFunc(obj)
		if err != nil {
			return "", err
		}
		switch len(values) {
		case 0:
			return "", errors.New("unexpected empty indexKeys")
		case 1:
			return values[0], nil
		}
		return "", fmt.Errorf("too many keys: %v", values)
	}
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
