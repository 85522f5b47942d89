// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"reflect"
)

// TypedIndexFunc is an IndexFunc for objects of one type.
//
// Source: tools/cache/index.go TypedIndexFunc
type TypedIndexFunc[T any] func(obj T) ([]string, error)

// TypedIndexers holds typed index functions by index name.
//
// Source: tools/cache/index.go TypedIndexers
type TypedIndexers[T any] map[string]TypedIndexFunc[T]

// TypedIndexer is an Indexer of objects of type T. An object of another type makes its methods
// fail. The result of NewTypedIndexer has two more methods: Len, see Counter, and Unwrap, which
// returns the Indexer inside.
//
// Source: tools/cache/index.go TypedIndexer
type TypedIndexer[T any] interface {
	Indexer

	// TypedIndex is Index.
	TypedIndex(indexName string, obj T) ([]T, error)
	// ByTypedIndex is ByIndex.
	ByTypedIndex(indexName, indexedValue string) ([]T, error)
	// AddTypedIndexers is AddIndexers. It fails if T is a part of the stored objects, such as a
	// compact.Summary: index functions take the whole objects.
	AddTypedIndexers(newIndexers TypedIndexers[T]) error
}

// NewTypedIndexer wraps an Indexer of objects of type T.
//
// Source: tools/cache/shared_informer.go typedIndexer
func NewTypedIndexer[T any](indexer Indexer) TypedIndexer[T] {
	return typedIndexer[T]{indexer}
}

type typedIndexer[T any] struct{ Indexer }

// Len implements Counter.
func (i typedIndexer[T]) Len() int { return Len(i.Indexer) }

// Unwrap returns the Indexer inside.
func (i typedIndexer[T]) Unwrap() Indexer { return i.Indexer }

// innermost returns the Store inside s, which may have methods that its wrappers do not have.
func innermost(s Store) Store {
	for {
		wrapper, ok := s.(interface{ Unwrap() Indexer })
		if !ok {
			return s
		}
		s = wrapper.Unwrap()
	}
}

func (i typedIndexer[T]) TypedIndex(indexName string, obj T) ([]T, error) {
	return typedList[T](i.Index(indexName, obj))
}

func (i typedIndexer[T]) ByTypedIndex(indexName, indexedValue string) ([]T, error) {
	return typedList[T](i.ByIndex(indexName, indexedValue))
}

func (i typedIndexer[T]) AddTypedIndexers(newIndexers TypedIndexers[T]) error {
	whole, ok := innermost(i).(interface{ Whole() bool })
	if ok && !whole.Whole() {
		const text = "index functions take whole objects, and a %v is a part of one: use" +
			" AddIndexers, or Options.Indexers"
		return fmt.Errorf(text, reflect.TypeFor[T]())
	}
	return i.AddIndexers(TypedIndexersToIndexers(newIndexers))
}

// TypedIndexersToIndexers wraps typed index functions for an untyped Indexer.
//
// Source: tools/cache/index.go TypedIndexersToIndexers
func TypedIndexersToIndexers[T any](indexers TypedIndexers[T]) Indexers {
	untyped := make(Indexers, len(indexers))
	for name, indexFunc := range indexers {
		untyped[name] = TypedIndexerFuncToIndexerFunc(indexFunc)
	}
	return untyped
}

// TypedIndexerFuncToIndexerFunc wraps a typed index function for an untyped Indexer. An object of
// another type is an error.
//
// Source: tools/cache/index.go TypedIndexerFuncToIndexerFunc
func TypedIndexerFuncToIndexerFunc[T any](indexFunc TypedIndexFunc[T]) IndexFunc {
	return func(obj any) ([]string, error) {
		typed, err := as[T](obj)
		if err != nil {
			return nil, err
		}
		return indexFunc(typed)
	}
}

func typedList[T any](list []any, err error) ([]T, error) {
	if err != nil {
		return nil, err
	}
	typed := make([]T, len(list))
	for i, obj := range list {
		if typed[i], err = as[T](obj); err != nil {
			return nil, err
		}
	}
	return typed, nil
}

// as asserts the type of a stored object.
func as[T any](obj any) (T, error) {
	typed, ok := obj.(T)
	if !ok {
		return typed, fmt.Errorf("object is a %T, not a %v", obj, reflect.TypeFor[T]())
	}
	return typed, nil
}
