// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"strings"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"example.com/informerstack/store"
)

// Object is the constraint of typed handlers. Pointers to all Kubernetes API types satisfy it. It
// is comparable so that the zero T can mean a missing object.
//
// Source: tools/cache/controller.go Object
type Object interface {
	comparable
	GetName() string
	GetNamespace() string
}

// TypedResourceEventHandler is a ResourceEventHandler for objects of one type. It needs no type
// assertions, also not for tombstones.
//
// Source: tools/cache/controller.go TypedResourceEventHandler
type TypedResourceEventHandler[T Object] interface {
	OnAdd(obj T, isInInitialList bool)
	OnUpdate(oldObj, newObj T)
	OnDelete(obj DeletedObject[T])
}

// DeletedObject is a deleted object. Its key and name are always known, its last state may not be.
//
// Source: tools/cache/controller.go DeletedObject
type DeletedObject[T Object] struct {
	// OptionalObj is the last known state, or the zero T if no state is known. It is stale if
	// FinalStateUnknown is set.
	OptionalObj T
	// FinalStateUnknown is the tombstone if the watch did not report the delete; otherwise nil.
	FinalStateUnknown *store.DeletedFinalStateUnknown
}

// GetObjectName returns the namespace and name. For a tombstone they are the parts of the key
// before and after the first slash.
func (d DeletedObject[T]) GetObjectName() store.ObjectName {
	var none T
	switch {
	case d.FinalStateUnknown != nil:
		namespace, name, slash := strings.Cut(d.FinalStateUnknown.Key, "/")
		if !slash {
			return store.NewObjectName("", d.FinalStateUnknown.Key)
		}
		return store.NewObjectName(namespace, name)
	case d.OptionalObj == none:
		return store.ObjectName{}
	}
	return store.NewObjectName(d.OptionalObj.GetNamespace(), d.OptionalObj.GetName())
}

// GetName returns the name without the namespace.
func (d DeletedObject[T]) GetName() string { return d.GetObjectName().Name }

// GetNamespace returns the namespace; "" for a cluster-scoped object.
func (d DeletedObject[T]) GetNamespace() string { return d.GetObjectName().Namespace }

// GetKey returns the key under which the object was stored.
func (d DeletedObject[T]) GetKey() string {
	if d.FinalStateUnknown != nil {
		return d.FinalStateUnknown.Key
	}
	return d.GetObjectName().String()
}

// TypedResourceEventHandlerFuncs is a TypedResourceEventHandler of functions. Each may be nil.
//
// Source: tools/cache/controller.go TypedResourceEventHandlerFuncs
type TypedResourceEventHandlerFuncs[T Object] struct {
	AddFunc    func(obj T)
	UpdateFunc func(oldObj, newObj T)
	DeleteFunc func(obj DeletedObject[T])
}

// OnAdd calls AddFunc.
func (f TypedResourceEventHandlerFuncs[T]) OnAdd(obj T, _ bool) {
	if f.AddFunc != nil {
		f.AddFunc(obj)
	}
}

// OnUpdate calls UpdateFunc.
func (f TypedResourceEventHandlerFuncs[T]) OnUpdate(oldObj, newObj T) {
	if f.UpdateFunc != nil {
		f.UpdateFunc(oldObj, newObj)
	}
}

// OnDelete calls DeleteFunc.
func (f TypedResourceEventHandlerFuncs[T]) OnDelete(obj DeletedObject[T]) {
	if f.DeleteFunc != nil {
		f.DeleteFunc(obj)
	}
}

// TypedResourceEventHandlerDetailedFuncs is TypedResourceEventHandlerFuncs with isInInitialList for
// AddFunc.
//
// Source: tools/cache/controller.go TypedResourceEventHandlerDetailedFuncs
type TypedResourceEventHandlerDetailedFuncs[T Object] struct {
	AddFunc    func(obj T, isInInitialList bool)
	UpdateFunc func(oldObj, newObj T)
	DeleteFunc func(obj DeletedObject[T])
}

// OnAdd calls AddFunc.
func (f TypedResourceEventHandlerDetailedFuncs[T]) OnAdd(obj T, isInInitialList bool) {
	if f.AddFunc != nil {
		f.AddFunc(obj, isInInitialList)
	}
}

// OnUpdate calls UpdateFunc.
func (f TypedResourceEventHandlerDetailedFuncs[T]) OnUpdate(oldObj, newObj T) {
	if f.UpdateFunc != nil {
		f.UpdateFunc(oldObj, newObj)
	}
}

// OnDelete calls DeleteFunc.
func (f TypedResourceEventHandlerDetailedFuncs[T]) OnDelete(obj DeletedObject[T]) {
	if f.DeleteFunc != nil {
		f.DeleteFunc(obj)
	}
}

// TypedFilteringResourceEventHandler is FilteringResourceEventHandler for objects of one type. For
// a delete FilterFunc gets OptionalObj, which is the zero T if no state of the object is known.
//
// Source: tools/cache/controller.go TypedFilteringResourceEventHandler
type TypedFilteringResourceEventHandler[T Object] struct {
	FilterFunc func(obj T) bool
	Handler    TypedResourceEventHandler[T]
}

// OnAdd calls Handler if the object passes.
func (f TypedFilteringResourceEventHandler[T]) OnAdd(obj T, isInInitialList bool) {
	if f.FilterFunc(obj) {
		f.Handler.OnAdd(obj, isInInitialList)
	}
}

// OnUpdate calls Handler by the table at FilteringResourceEventHandler.
func (f TypedFilteringResourceEventHandler[T]) OnUpdate(oldObj, newObj T) {
	switch before, after := f.FilterFunc(oldObj), f.FilterFunc(newObj); {
	case before && after:
		f.Handler.OnUpdate(oldObj, newObj)
	case after:
		f.Handler.OnAdd(newObj, false)
	case before:
		f.Handler.OnDelete(DeletedObject[T]{OptionalObj: oldObj})
	}
}

// OnDelete calls Handler if the deleted object passes.
func (f TypedFilteringResourceEventHandler[T]) OnDelete(obj DeletedObject[T]) {
	if f.FilterFunc(obj.OptionalObj) {
		f.Handler.OnDelete(obj)
	}
}

// untyped adapts a typed handler to ResourceEventHandler. It reports an object of another type as
// an error and skips it. Only a transform, or an informer without an example object, can produce
// one.
type untyped[T Object] struct {
	handler TypedResourceEventHandler[T]
}

// Untyped returns handler as a ResourceEventHandler, for informers that are not typed. Objects of
// another type than T are reported with utilruntime.HandleError and skipped.
func Untyped[T Object](handler TypedResourceEventHandler[T]) ResourceEventHandler {
	if handler == nil {
		return nil // an error of AddEventHandler
	}
	return untyped[T]{handler: handler}
}

// OnAdd implements ResourceEventHandler.
func (u untyped[T]) OnAdd(obj any, isInInitialList bool) {
	if typed, ok := as[T](obj); ok {
		u.handler.OnAdd(typed, isInInitialList)
	}
}

// OnUpdate implements ResourceEventHandler.
func (u untyped[T]) OnUpdate(oldObj, newObj any) {
	typedOld, oldOK := as[T](oldObj)
	typedNew, newOK := as[T](newObj)
	if oldOK && newOK {
		u.handler.OnUpdate(typedOld, typedNew)
	}
}

// OnDelete implements ResourceEventHandler. It unpacks a tombstone.
func (u untyped[T]) OnDelete(obj any) {
	tombstone, ok := obj.(store.DeletedFinalStateUnknown)
	if !ok {
		if typed, ok := as[T](obj); ok {
			u.handler.OnDelete(DeletedObject[T]{OptionalObj: typed})
		}
		return
	}
	typed, _ := tombstone.Obj.(T) // a delete is delivered even if only the key is known
	u.handler.OnDelete(DeletedObject[T]{OptionalObj: typed, FinalStateUnknown: &tombstone})
}

func as[T Object](obj any) (T, bool) {
	typed, ok := obj.(T)
	if !ok {
		err := fmt.Errorf("typed handler skipped an object: got %T, want %T", obj, typed)
		utilruntime.HandleError(err)
	}
	return typed, ok
}

// TypedSharedIndexInformer is a SharedIndexInformer whose additional methods need no type
// assertions.
//
// Source: tools/cache/shared_informer.go TypedSharedIndexInformer
type TypedSharedIndexInformer[T Object] interface {
	SharedIndexInformer
	// AddTypedEventHandler is AddEventHandlerWithOptions for a typed handler. It fails if more than
	// one HandlerOptions is passed.
	AddTypedEventHandler(
		handler TypedResourceEventHandler[T], options ...HandlerOptions,
	) (ResourceEventHandlerRegistration, error)
	// AddTypedIndexers is AddIndexers for typed index functions.
	AddTypedIndexers(indexers store.TypedIndexers[T]) error
	// GetTypedIndexer returns the store with typed methods.
	GetTypedIndexer() store.TypedIndexer[T]
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
	switch len(options) {
	case 0:
		return i.AddEventHandler(Untyped(handler))
	case 1:
		return i.AddEventHandlerWithOptions(Untyped(handler), options[0])
	}
	return nil, fmt.Errorf("at most one HandlerOptions may be passed, got %d", len(options))
}

// AddTypedIndexers implements TypedSharedIndexInformer.
func (i typedInformer[T]) AddTypedIndexers(indexers store.TypedIndexers[T]) error {
	return i.AddIndexers(store.TypedIndexersToIndexers(indexers))
}

// GetTypedIndexer implements TypedSharedIndexInformer.
func (i typedInformer[T]) GetTypedIndexer() store.TypedIndexer[T] {
	return store.NewTypedIndexer[T](i.GetIndexer())
}
