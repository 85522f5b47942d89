// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"fmt"

	"example.com/informerstack/informer"
	"example.com/informerstack/store"
)

// TypedSharedIndexInformer is a SharedIndexInformer with methods that need no type assertions.
//
// Source: tools/cache/shared_informer.go TypedSharedIndexInformer
type TypedSharedIndexInformer[T Object] interface {
	SharedIndexInformer
	// AddTypedEventHandler adds a handler, with at most one HandlerOptions.
	AddTypedEventHandler(
		handler TypedResourceEventHandler[T], options ...HandlerOptions,
	) (ResourceEventHandlerRegistration, error)
	// AddTypedIndexers is AddIndexers.
	AddTypedIndexers(indexers TypedIndexers[T]) error
	// GetTypedIndexer is GetIndexer.
	GetTypedIndexer() TypedIndexer[T]
}

// NewTypedSharedIndexInformer adds typed methods to an informer of objects of type T. The result is
// the same informer.
//
// Source: tools/cache/shared_informer.go NewTypedSharedIndexInformer
func NewTypedSharedIndexInformer[T Object](
	informer SharedIndexInformer,
) TypedSharedIndexInformer[T] {
	return typedInformer[T]{informer}
}

type typedInformer[T Object] struct{ SharedIndexInformer }

// AddTypedEventHandler implements TypedSharedIndexInformer.
func (i typedInformer[T]) AddTypedEventHandler(
	handler TypedResourceEventHandler[T], options ...HandlerOptions,
) (ResourceEventHandlerRegistration, error) {
	var one HandlerOptions
	switch len(options) {
	case 0:
	case 1:
		one = options[0]
	default:
		return nil, fmt.Errorf("at most one HandlerOptions may be passed, got %d", len(options))
	}
	return i.AddEventHandlerWithOptions(informer.Untyped(handler), one)
}

// AddTypedIndexers implements TypedSharedIndexInformer.
func (i typedInformer[T]) AddTypedIndexers(indexers TypedIndexers[T]) error {
	return i.AddIndexers(TypedIndexersToIndexers(indexers))
}

// GetTypedIndexer implements TypedSharedIndexInformer.
func (i typedInformer[T]) GetTypedIndexer() TypedIndexer[T] {
	return store.NewTypedIndexer[T](i.GetIndexer())
}
