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
// assertions, not even for tombstones.
//
// Source: tools/cache/controller.go TypedResourceEventHandler
type TypedResourceEventHandler[T Object] interface {
	OnAdd(obj T, isInInitialList bool)
	OnUpdate(oldObj, newObj T)
	OnDelete(obj DeletedObject[T])
}

// DeletedObject is a deleted object. Its key and name are always known, but its last state may not
// be.
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

// GetKey returns the object's key in the store.
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

func (u untyped[T]) OnAdd(obj any, isInInitialList bool) {
	if typed, ok := as[T](obj); ok {
		u.handler.OnAdd(typed, isInInitialList)
	}
}

func (u untyped[T]) OnUpdate(oldObj, newObj any) {
	typedOld, oldOK := as[T](oldObj)
	typedNew, newOK := as[T](newObj)
	if oldOK && newOK {
		u.handler.OnUpdate(typedOld, typedNew)
	}
}

// OnDelete unpacks a tombstone.
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
