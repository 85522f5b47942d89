// SPDX-License-Identifier: Apache-2.0

package cache

import "example.com/informerstack/informer"

// Who is told what changes. Each is the type of package informer.
type (
	// ResourceEventHandler is told what changes in an informer's store.
	ResourceEventHandler = informer.ResourceEventHandler
	// ResourceEventHandlerFuncs is a handler made of functions.
	ResourceEventHandlerFuncs = informer.ResourceEventHandlerFuncs
	// ResourceEventHandlerDetailedFuncs is one that knows the initial list.
	ResourceEventHandlerDetailedFuncs = informer.ResourceEventHandlerDetailedFuncs
	// FilteringResourceEventHandler shows a handler some of the objects only.
	FilteringResourceEventHandler = informer.FilteringResourceEventHandler
	// HandlerOptions adapts how an informer treats one handler.
	HandlerOptions = informer.HandlerOptions

	// Object is what a typed handler needs of an object.
	Object = informer.Object
	// TypedResourceEventHandler is a handler for objects of one type.
	TypedResourceEventHandler[T Object] = informer.TypedResourceEventHandler[T]
	// TypedResourceEventHandlerFuncs is a typed handler made of functions.
	TypedResourceEventHandlerFuncs[T Object] = informer.TypedResourceEventHandlerFuncs[T]
	// DeletedObject is an object that is gone.
	DeletedObject[T Object] = informer.DeletedObject[T]
)

// ResourceEventHandlerRegistration is the handle of an added handler. Informers made here return the one of package
// informer, whose Status says how far behind the handler is.
//
// Source: tools/cache/shared_informer.go ResourceEventHandlerRegistration
type ResourceEventHandlerRegistration interface {
	// HasSynced is true once OnAdd has returned for every object of the initial list.
	HasSynced() bool
	// HasSyncedChecker returns HasSynced as a channel.
	HasSyncedChecker() DoneChecker
}
