// SPDX-License-Identifier: Apache-2.0

package cache

import "example.com/informerstack/informer"

// Handlers. Each type is that of package informer.
type (
	// ResourceEventHandler is notified of changes of an informer's store.
	ResourceEventHandler = informer.ResourceEventHandler
	// ResourceEventHandlerFuncs is a handler of functions.
	ResourceEventHandlerFuncs = informer.ResourceEventHandlerFuncs
	// ResourceEventHandlerDetailedFuncs is a handler of functions. Its AddFunc gets
	// isInInitialList.
	ResourceEventHandlerDetailedFuncs = informer.ResourceEventHandlerDetailedFuncs
	// FilteringResourceEventHandler notifies a handler of some of the objects only.
	FilteringResourceEventHandler = informer.FilteringResourceEventHandler
	// HandlerOptions configures one handler of an informer.
	HandlerOptions = informer.HandlerOptions

	// Object is the constraint of typed handlers.
	Object = informer.Object
	// TypedResourceEventHandler is a handler for objects of one type.
	TypedResourceEventHandler[T Object] = informer.TypedResourceEventHandler[T]
	// TypedResourceEventHandlerFuncs is a typed handler of functions.
	TypedResourceEventHandlerFuncs[T Object] = informer.TypedResourceEventHandlerFuncs[T]
	// DeletedObject is a deleted object.
	DeletedObject[T Object] = informer.DeletedObject[T]
)

// ResourceEventHandlerRegistration is the handle of an added handler. The informers of this package
// return package informer's handle. Its Status reports the handler's backlog.
//
// Source: tools/cache/shared_informer.go ResourceEventHandlerRegistration
type ResourceEventHandlerRegistration interface {
	// HasSynced is true once OnAdd has returned for every object of the initial list.
	HasSynced() bool
	// HasSyncedChecker returns HasSynced as a channel.
	HasSyncedChecker() DoneChecker
}
