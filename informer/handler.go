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

// ResourceEventHandler is notified of changes of the objects of one informer.
//
// A handler is called by one goroutine at a time, and gets the changes of an object in order. It
// returns no error: work that can fail belongs in a workqueue. Usually a handler adds the object's
// key to a workqueue and returns. The objects are shared with all readers of the store: a handler
// must not modify them.
//
// A handler may call every method of its informer, even AddEventHandler, and RemoveEventHandler for
// itself. It must not wait for its own ShutdownChan, or for Run to return: both wait for the
// handler.
//
// Source: tools/cache/controller.go ResourceEventHandler
type ResourceEventHandler interface {
	// OnAdd is called for an object that was not in the store. isInInitialList is true for the
	// objects of the first list, and for the objects that were in the store when the handler was
	// added. Such an object exists, but need not be new.
	OnAdd(obj any, isInInitialList bool)
	// OnUpdate is called for an object that was in the store. oldObj is the stored object, newObj
	// its replacement. In a resync both are the same object. After a relist without a change both
	// have the same resourceVersion. States between the two may have been skipped.
	OnUpdate(oldObj, newObj any)
	// OnDelete gets the last state of the object, or a store.DeletedFinalStateUnknown if a broken
	// watch hid the delete.
	OnDelete(obj any)
}

// ResourceEventHandlerFuncs is a ResourceEventHandler of functions. Each may be nil.
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

// ResourceEventHandlerDetailedFuncs is ResourceEventHandlerFuncs with isInInitialList for AddFunc.
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

// FilteringResourceEventHandler notifies Handler only of objects that pass FilterFunc. If an object
// begins to pass with an update, Handler gets an add. If an object no longer passes, Handler gets a
// delete. The store still holds every object. To save memory, use a selector, which keeps objects
// out, or a transform, which makes them smaller.
//
//	old passes | new passes | Handler gets
//	yes        | yes        | OnUpdate(old, new)
//	no         | yes        | OnAdd(new, false)
//	yes        | no         | OnDelete(old)
//	no         | no         | nothing
//
// FilterFunc must accept a store.DeletedFinalStateUnknown, which OnDelete passes to it unchanged.
//
// Source: tools/cache/controller.go FilteringResourceEventHandler
type FilteringResourceEventHandler struct {
	FilterFunc func(obj any) bool
	Handler    ResourceEventHandler
}

// OnAdd calls Handler if the object passes.
func (f FilteringResourceEventHandler) OnAdd(obj any, isInInitialList bool) {
	if f.FilterFunc(obj) {
		f.Handler.OnAdd(obj, isInInitialList)
	}
}

// OnUpdate calls Handler by the table at FilteringResourceEventHandler.
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

// OnDelete calls Handler if the object or the tombstone passes.
func (f FilteringResourceEventHandler) OnDelete(obj any) {
	if f.FilterFunc(obj) {
		f.Handler.OnDelete(obj)
	}
}

// ResourceEventHandlerRegistration is the handle of an added handler. RemoveEventHandler takes it.
//
// Source: tools/cache/shared_informer.go ResourceEventHandlerRegistration
type ResourceEventHandlerRegistration interface {
	// HasSynced is true once OnAdd has returned for every object of the initial list. That is later
	// than the informer's own HasSynced, which reports that the store holds them.
	HasSynced() bool
	// HasSyncedChecker returns HasSynced as a channel, which never closes if the handler is removed
	// before it has synced.
	HasSyncedChecker() DoneChecker
	// Err is the informer's Err, for WaitForSync.
	Err() error
	// Status reports how far behind the handler is.
	Status() HandlerStatus
	// ShutdownChan returns a channel that closes when the handler was removed, or its informer has
	// stopped, and its last call has returned.
	ShutdownChan() <-chan struct{}
}

// HandlerStatus is a snapshot of a handler.
type HandlerStatus struct {
	// Name identifies the handler in messages: a type, or the name of a function.
	Name string
	// HasSynced is the registration's HasSynced.
	HasSynced bool
	// Pending is the number of changes that are waiting or being delivered.
	Pending int
	// OldestPending is the age of the oldest pending change; 0 if no change is pending.
	OldestPending time.Duration
	// Calls is the number of calls that have ended. Panics is the number of those that panicked.
	Calls, Panics int
}

// HandlerOptions configures one handler of an informer. The zero value is client-go's behavior.
//
// Source: tools/cache/shared_informer.go HandlerOptions
type HandlerOptions struct {
	// Logger logs messages about the handler; nil means klog.Background().
	Logger *klog.Logger
	// ResyncPeriod is the handler's own resync period: about every ResyncPeriod the handler gets
	// OnUpdate for each object in the store, with the same object twice. The objects come from
	// memory, not from the server. nil means the informer's ResyncPeriod, 0 means never. A period
	// below one second is raised to one second. After the start, a period below the informer's
	// shortest is raised to that. An informer without a resync period ignores it.
	ResyncPeriod *time.Duration

	// SkipUnchanged suppresses the updates without a change that a relist causes. A resync that the
	// handler asked for is still delivered. Without SkipUnchanged, a handler gets them before the
	// informer's first resync check, and later if it took part in the newest resync. If the
	// informer does no resyncs, the handler always gets them.
	SkipUnchanged bool
	// SplitRecreated replaces an update of two objects with different UIDs, which hides an unseen
	// delete, by OnDelete with a tombstone of the old object and OnAdd of the new one.
	SplitRecreated bool
	// Coalesce bounds the memory of a slow handler: the pending changes of an object are merged.
	// The handler gets the last state of every object and every delete, but not each state in
	// between. An object that was added and changed is one add. An object that was deleted
	// and created again is OnDelete and then OnAdd. An object that was changed and deleted is
	// OnUpdate and then OnDelete. An object that was added and deleted is OnDelete alone.
	Coalesce bool
	// SkipPanics makes a panic of the handler cost the one notification: it is counted and logged,
	// and delivery continues. Without it a panic ends the process, as utilruntime.HandleCrash does.
	// (With utilruntime.ReallyCrash off, the process survives and the next delivery waits a
	// second.)
	SkipPanics bool
	// DrainTimeout is the maximum time for delivering the pending changes after the handler was
	// removed or its informer stopped; Run waits for that. 0 drops them at once. A running call is
	// waited for in any case.
	DrainTimeout time.Duration
}

// handlerName returns a name for messages: that of the first function, or of the type. A wrapper
// has a method Unwrap that returns the inner handler.
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
