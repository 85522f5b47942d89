// SPDX-License-Identifier: Apache-2.0

package informer

// ResourceEventHandler is told what happened to the objects of one informer.
//
// One handler is called by one goroutine at a time, and sees the changes of one object in the order in which they
// happened. It cannot fail: work that can belongs into a workqueue, for which a handler usually adds the object's key and
// returns. The objects are the store's own, shared with every other reader: a handler must not change them.
//
// A handler may call any method of its informer, AddEventHandler and RemoveEventHandler (of itself too) included. It must
// not wait for what waits for it: ShutDownEventHandler of itself, or the return of Run.
//
// Source: tools/cache/controller.go ResourceEventHandler
type ResourceEventHandler interface {
	// OnAdd is called for an object that was not in the store. isInInitialList is true for what the first list held, and
	// for what was in the store when the handler was added: the object exists, which does not mean that it is new.
	OnAdd(obj any, isInInitialList bool)
	// OnUpdate is called for an object that was in the store, as oldObj. Both are the same object in a resync, and have
	// the same resourceVersion when a relist found no change. Changes may have been merged: oldObj is what the store
	// held, not each state in between.
	OnUpdate(oldObj, newObj any)
	// OnDelete gets the object's last state, or a store.DeletedFinalStateUnknown when a broken watch hid its end.
	OnDelete(obj any)
}

// ResourceEventHandlerFuncs is a ResourceEventHandler made of functions; nil ones do nothing.
//
// Source: tools/cache/controller.go ResourceEventHandlerFuncs
type ResourceEventHandlerFuncs struct {
	AddFunc    func(obj any)
	UpdateFunc func(oldObj, newObj any)
	DeleteFunc func(obj any)
}

// OnAdd calls AddFunc.
func (f ResourceEventHandlerFuncs) OnAdd(obj any, _ bool) {
	if f.AddFunc != nil {
		f.AddFunc(obj)
	}
}

// OnUpdate calls UpdateFunc.
func (f ResourceEventHandlerFuncs) OnUpdate(oldObj, newObj any) {
	if f.UpdateFunc != nil {
		f.UpdateFunc(oldObj, newObj)
	}
}

// OnDelete calls DeleteFunc.
func (f ResourceEventHandlerFuncs) OnDelete(obj any) {
	if f.DeleteFunc != nil {
		f.DeleteFunc(obj)
	}
}

// ResourceEventHandlerDetailedFuncs is ResourceEventHandlerFuncs whose AddFunc is told about the initial list.
//
// Source: tools/cache/controller.go ResourceEventHandlerDetailedFuncs
type ResourceEventHandlerDetailedFuncs struct {
	AddFunc    func(obj any, isInInitialList bool)
	UpdateFunc func(oldObj, newObj any)
	DeleteFunc func(obj any)
}

// OnAdd calls AddFunc.
func (f ResourceEventHandlerDetailedFuncs) OnAdd(obj any, isInInitialList bool) {
	if f.AddFunc != nil {
		f.AddFunc(obj, isInInitialList)
	}
}

// OnUpdate calls UpdateFunc.
func (f ResourceEventHandlerDetailedFuncs) OnUpdate(oldObj, newObj any) {
	if f.UpdateFunc != nil {
		f.UpdateFunc(oldObj, newObj)
	}
}

// OnDelete calls DeleteFunc.
func (f ResourceEventHandlerDetailedFuncs) OnDelete(obj any) {
	if f.DeleteFunc != nil {
		f.DeleteFunc(obj)
	}
}

// FilteringResourceEventHandler shows Handler only the objects for which FilterFunc is true, as if there were no others: an
// update after which an object passes for the first time is an add, one after which it no longer passes is a delete.
// The store still holds every object; a selector or a transform keeps them out of memory.
//
//	old passes | new passes | Handler gets
//	yes        | yes        | OnUpdate(old, new)
//	no         | yes        | OnAdd(new, false)
//	yes        | no         | OnDelete(old)
//	no         | no         | nothing
//
// FilterFunc must be prepared for a store.DeletedFinalStateUnknown, which OnDelete passes to it as it came.
//
// Source: tools/cache/controller.go FilteringResourceEventHandler
type FilteringResourceEventHandler struct {
	FilterFunc func(obj any) bool
	Handler    ResourceEventHandler
}

// OnAdd passes on an object that passes.
func (f FilteringResourceEventHandler) OnAdd(obj any, isInInitialList bool) {
	if f.FilterFunc(obj) {
		f.Handler.OnAdd(obj, isInInitialList)
	}
}

// OnUpdate passes on what the table at FilteringResourceEventHandler says.
func (f FilteringResourceEventHandler) OnUpdate(oldObj, newObj any) {
	switch before, after := f.FilterFunc(oldObj), f.FilterFunc(newObj); {
	case before && after:
		f.Handler.OnUpdate(oldObj, newObj)
	case after:
		f.Handler.OnAdd(newObj, false)
	case before:
		f.Handler.OnDelete(oldObj)
	}
}

// OnDelete passes on an object, or a tombstone, that passes.
func (f FilteringResourceEventHandler) OnDelete(obj any) {
	if f.FilterFunc(obj) {
		f.Handler.OnDelete(obj)
	}
}
