// SPDX-License-Identifier: Apache-2.0

package cache

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
