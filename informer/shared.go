// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"

	"example.com/informerstack/store"
)

// SharedInformer keeps one copy of a collection for any number of handlers.
//
//   - Eventual: while it runs and reaches the server, its store converges to the content of the
//     server. The store may be behind, but it does not go back. It may skip states of an object,
//     and it keeps the order of the others.
//   - Delivered: each handler is notified of every change of the store, after the store has
//     changed, one call at a time, in order for each object. By then the store may have changed
//     again. There is no order between handlers.
//   - Complete: a handler that is added late is first notified of the content of the store, as
//     OnAdd with isInInitialList, and misses no change after that. A delete that a broken watch hid
//     arrives as a tombstone.
//   - By name: an object is identified by namespace and name. If it is deleted and created again
//     while the watch is broken, handlers get an update of two objects with different UIDs. See
//     HandlerOptions.SplitRecreated.
//   - Shared: objects are not copied. A reader that modifies one modifies it for all readers.
//   - Patient: a slow handler delays no other, but its undelivered changes wait in memory. See
//     HandlerOptions.Coalesce and ResourceEventHandlerRegistration.Status.
//   - Once: an informer runs once. A second run needs a new informer.
//
// Every method may be called from any goroutine, also from a handler, before, during and after Run.
//
// Source: tools/cache/shared_informer.go SharedInformer
type SharedInformer interface {
	// AddEventHandler adds a handler that resyncs with the informer's own period. It does not wait
	// for any handler. It fails if handler is nil, or if the informer has stopped.
	AddEventHandler(handler ResourceEventHandler) (ResourceEventHandlerRegistration, error)
	// AddEventHandlerWithOptions adds a handler with options. It fails as AddEventHandler does.
	AddEventHandlerWithOptions(
		handler ResourceEventHandler, options HandlerOptions,
	) (ResourceEventHandlerRegistration, error)
	// RemoveEventHandler removes a handler. Its undelivered changes are dropped, or delivered in
	// the background if it has a DrainTimeout. It does not wait for a call in flight; the handle's
	// ShutdownChan reports the end. Removing a handle twice, or another informer's handle, is a
	// no-op. A handle that no informer of this package has made is an error.
	RemoveEventHandler(handle ResourceEventHandlerRegistration) error

	// GetStore returns the store. Callers may only read it.
	GetStore() store.Store

	// Run lists and watches until ctx is done. It returns when all its goroutines have ended and no
	// handler call is running. Undelivered changes are dropped, except for handlers with a
	// DrainTimeout. A second Run logs a warning and returns.
	Run(ctx context.Context)
	// HasSynced is true once the store has held a complete list. Handlers may not have been
	// notified of it yet; HasSynced of their registrations reports that.
	HasSynced() bool
	// HasSyncedChecker returns HasSynced as a channel, which never closes if the informer stops
	// before it has synced.
	HasSyncedChecker() DoneChecker
	// LastSyncResourceVersion is the resourceVersion of the last list, change or bookmark that was
	// received; "" before the first list.
	LastSyncResourceVersion() string
	// Err returns the error that keeps the informer from listing or watching: that of the newest
	// attempt. It is nil if no attempt has failed, and once a watch is open again.
	Err() error
	// Status returns a snapshot of the informer and its handlers, for messages and debug pages. It
	// does not wait, not even while a handler, a transform, an index function or the store hangs.
	Status() Status
	// Health reports how recent the store is, for health checks. It does not wait either.
	Health() Health
	// WaitForResourceVersion blocks until the store holds every change up to resourceVersion. With
	// the resourceVersion of an object that the caller has just written, the caller then reads its
	// own write or a newer state. Handlers may be notified later.
	//
	// If the informer does not select the object, the wait ends at the next bookmark, after about a
	// minute. The error is a *BehindError if ctx is done, if the informer has stopped, or if the
	// server's resourceVersions are not numbers. Any other error means that resourceVersion is not
	// a positive decimal number. A handler may call it; that delays only this handler.
	WaitForResourceVersion(ctx context.Context, resourceVersion string) error

	// IsStopped is true once Run has ended. Then handlers and indexers can no longer be added.
	IsStopped() bool
}

// SharedIndexInformer is a SharedInformer whose store has indexes.
//
// Source: tools/cache/shared_informer.go SharedIndexInformer
type SharedIndexInformer interface {
	SharedInformer
	// AddIndexers adds index functions and indexes the stored objects. It fails if a name is taken,
	// or if the informer has stopped.
	AddIndexers(indexers store.Indexers) error
	// GetIndexer returns the store. Callers may only read it.
	GetIndexer() store.Indexer
}
