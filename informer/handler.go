// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"time"

	"k8s.io/klog/v2"
)

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

// ResourceEventHandlerRegistration is the handle of an added handler. It removes the handler, and tells how far it is.
//
// Source: tools/cache/shared_informer.go ResourceEventHandlerRegistration
type ResourceEventHandlerRegistration interface {
	// HasSynced is true once OnAdd has returned for every object of the initial list: later than the informer's own
	// HasSynced, which says only that the store holds them.
	HasSynced() bool
	// HasSyncedChecker returns HasSynced as a channel, which never closes if the handler is removed before.
	HasSyncedChecker() DoneChecker
	// Status says how far behind the handler is.
	Status() HandlerStatus
	// ShutdownChan returns a channel that closes when the handler was removed, or its informer has
	// stopped, and its last call has returned.
	ShutdownChan() <-chan struct{}
}

// HandlerStatus is a moment in the life of a handler.
type HandlerStatus struct {
	// Name tells handlers apart in messages: a type, or the name of a function.
	Name string
	// HasSynced is the registration's HasSynced.
	HasSynced bool
	// Pending is the number of changes that it is to be told and has not dealt with yet.
	Pending int
	// OldestPending is how long the oldest of them has been waiting; 0 if there is none.
	OldestPending time.Duration
	// Calls is the number of calls that have ended, Panics how many of them by a panic.
	Calls, Panics int
}

// HandlerOptions adapts how an informer treats one handler. The zero value is client-go's behavior.
//
// Source: tools/cache/shared_informer.go HandlerOptions
type HandlerOptions struct {
	// Logger is used for what concerns the handler; nil means klog.Background().
	Logger *klog.Logger
	// ResyncPeriod is how often every object in the store is replayed to the handler as an update; nil means the
	// informer's own ResyncPeriod, 0 never. See SharedInformer.AddEventHandlerWithResyncPeriod.
	ResyncPeriod *time.Duration

	// SkipUnchanged keeps from the handler the updates that change nothing, by which a relist confirms what is known. A
	// resync that the handler asked for is still delivered. Without it, a handler hears of them until its informer's
	// first resync check, and a handler of an informer without resync always does.
	SkipUnchanged bool
	// SplitRecreated tells an update that joins two objects of one name and different UIDs, because the delete between
	// them was not seen, as OnDelete with a tombstone of the old one and OnAdd of the new one.
	SplitRecreated bool
	// Coalesce bounds the memory that a slow handler can cost: changes of an object that the handler has not been told of
	// yet are merged into one. It then sees the last state of every object and every delete, but not each step between:
	// an object that was added and changed is one add, and one that was re-created is OnDelete and then OnAdd. An object
	// that came and went unseen is OnDelete alone.
	Coalesce bool
	// SkipPanics makes a panic of the handler cost the one notification: it is counted and logged,
	// and delivery continues. Without it a panic ends the process, as utilruntime.HandleCrash does.
	// (With utilruntime.ReallyCrash off, the process survives and the next delivery waits a second.)
	SkipPanics bool
	// DrainTimeout is for how long what the handler was not told yet is still delivered after it was removed or its
	// informer stopped; the stop waits for it. 0 drops it at once. A call in flight is waited for in any case.
	DrainTimeout time.Duration
}

// handlerName tells handlers apart: functions by their name, others by their type. What only wraps another says so by a
// method Unwrap.
func handlerName(handler ResourceEventHandler) string {
	var funcs []any
	switch h := handler.(type) {
	case interface{ Unwrap() ResourceEventHandler }:
		return handlerName(h.Unwrap())
	case FilteringResourceEventHandler:
		return handlerName(h.Handler)
	case *FilteringResourceEventHandler:
		return handlerName(h.Handler)
	case ResourceEventHandlerFuncs:
		funcs = []any{h.AddFunc, h.UpdateFunc, h.DeleteFunc}
	case *ResourceEventHandlerFuncs:
		funcs = []any{h.AddFunc, h.UpdateFunc, h.DeleteFunc}
	case ResourceEventHandlerDetailedFuncs:
		funcs = []any{h.AddFunc, h.UpdateFunc, h.DeleteFunc}
	case *ResourceEventHandlerDetailedFuncs:
		funcs = []any{h.AddFunc, h.UpdateFunc, h.DeleteFunc}
	}
	for _, f := range funcs {
		if v := reflect.ValueOf(f); !v.IsNil() {
			name := runtime.FuncForPC(v.Pointer()).Name()
			return name[strings.LastIndex(name, "/")+1:]
		}
	}
	return fmt.Sprintf("%T", handler)
}
