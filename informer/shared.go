// SPDX-License-Identifier: Apache-2.0

// Package informer keeps a local copy of a collection on a server, and notifies handlers of its
// changes.
//
//	reflector -> deltafifo -> [informer] -> store
//	                                     -> handlers -> workqueue
//
// Read shared.go (what an informer promises), sharedinformer.go, controller.go (the loop),
// process.go (delta to store to change), processor.go, changelog.go (how many handlers read one
// list), listener.go; the other files are options and queries. Then run go test -v ./informer.
// Goroutines: an informer's Run is one, its reflector another, a third waits for the first list;
// each handler has one. Run starts them, and returns when they have ended.
// Locking: the informer's mu guards its life, the processor's mu the store with the change log;
// taken in this order. No handler runs under either. Index functions, and wrappers of the store,
// run under the second, and must not call the informer.
//
// Source: tools/cache/shared_informer.go SharedInformer, tools/cache/controller.go Controller
package informer

import (
	"context"
	"time"

	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// SharedInformer keeps one copy of a collection for any number of handlers.
//
// Eventual: as long as it runs and can reach the server, its store comes to hold what the server holds. It may be behind; it
// never goes back. Of the states that one object goes through it may skip some, and shows the others in order.
//
// Delivered: each handler hears of every change of the store, in order for each object, one call at a time, after the store
// has changed; by then the store may have changed again. Between handlers nothing is promised.
//
// Complete: a handler added late is first told of everything the store holds, as OnAdd with isInInitialList, and misses
// nothing after it. A delete that a broken watch hid arrives as a tombstone.
//
// By name: an object is its namespace and name. One that was deleted and created again while nobody looked is an update,
// whose two objects have different UIDs; see HandlerOptions.SplitRecreated.
//
// Shared: objects are not copied. Whoever changes one changes it for all.
//
// Patient: a slow handler delays nobody else, but what it was not told yet waits in memory; see HandlerOptions.Coalesce and
// ResourceEventHandlerRegistration.Status.
//
// Once: it runs once. A new one is made for a second run.
//
// Every method may be called from any goroutine, handlers included, at any time relative to Run.
//
// Source: tools/cache/shared_informer.go SharedInformer
type SharedInformer interface {
	// AddEventHandler adds a handler that resyncs with the informer's own period. It never waits for a handler. The error
	// says that handler is nil, or that the informer has stopped.
	AddEventHandler(handler ResourceEventHandler) (ResourceEventHandlerRegistration, error)
	// AddEventHandlerWithResyncPeriod adds a handler to which every object in the store is replayed, from memory, about every
	// resyncPeriod, as OnUpdate with the same object twice; 0 is never. Nothing is asked of the server. A period under a
	// second becomes a second; after the start, one under the informer's shortest becomes that; an informer without a
	// resync period ignores it.
	AddEventHandlerWithResyncPeriod(handler ResourceEventHandler, resyncPeriod time.Duration) (ResourceEventHandlerRegistration, error)
	// AddEventHandlerWithOptions adds a handler with options.
	AddEventHandlerWithOptions(handler ResourceEventHandler, options HandlerOptions) (ResourceEventHandlerRegistration, error)
	// RemoveEventHandler removes a handler. What it was not told yet is dropped, or delivered in the background if it has a
	// DrainTimeout; a call in flight goes on. ShutDownEventHandler waits for it. A handle that was removed before, or
	// belongs to another informer, is none of this informer's: nothing happens. A foreign implementation is an error.
	RemoveEventHandler(handle ResourceEventHandlerRegistration) error

	// GetStore returns the copy, which is for reading.
	GetStore() store.Store
	// GetController returns a Controller that tells the informer's state. Its Run does nothing.
	GetController() Controller

	// Run lists and watches until ctx is done. It returns when every goroutine has ended and no handler is being called;
	// changes still on their way are dropped, but see HandlerOptions.DrainTimeout. A second Run logs a warning and returns.
	Run(ctx context.Context)
	// HasSynced is true once the store has held a complete list. Handlers may not have been told yet; their
	// registration's HasSynced knows.
	HasSynced() bool
	// HasSyncedChecker returns HasSynced as a channel, which never closes if the informer stops before.
	HasSyncedChecker() DoneChecker
	// LastSyncResourceVersion is up to where the collection was followed; "" before the first list.
	LastSyncResourceVersion() string
	// Err returns the error that keeps the informer from listing or watching: that of the newest
	// attempt. It is nil if no attempt has failed, and once a watch is open again.
	Err() error
	// Status is a moment in the informer's life, for messages and debug pages.
	Status() Status
	// Health says how recent the store is, and why it is not, for health checks.
	Health() Health
	// WaitForResourceVersion waits until the store has everything up to resourceVersion: that of an object that the caller
	// has just written, say, which it then reads as it wrote it, or newer. Handlers may hear of it later. It may wait for
	// as long as the server keeps an idle watch without a bookmark, about a minute, if the object is none of the
	// informer's. The error is a *BehindError if ctx is done, or the informer has stopped, before; another one if
	// resourceVersion is no positive decimal number. A handler that calls it holds up nobody but itself.
	WaitForResourceVersion(ctx context.Context, resourceVersion string) error

	// SetWatchErrorHandler sets what is told why listing or watching failed, after which the informer backs off and tries
	// again. The error says that the informer has already started.
	SetWatchErrorHandler(handler reflector.WatchErrorHandler) error
	// SetTransform sets what each received object goes through once before it is kept. The error says that the informer
	// has already started.
	SetTransform(transform store.TransformFunc) error
	// IsStopped is true once a Run has ended. Handlers and indexers can no longer be added.
	IsStopped() bool
}

// SharedIndexInformer is a SharedInformer whose store has indexes.
//
// Source: tools/cache/shared_informer.go SharedIndexInformer
type SharedIndexInformer interface {
	SharedInformer
	// AddIndexers adds index functions and indexes what is stored. The error says that a name is taken, or that the
	// informer has stopped.
	AddIndexers(indexers store.Indexers) error
	// GetIndexer returns the copy, which is for reading.
	GetIndexer() store.Indexer
}

// ShutDownEventHandler removes a handler and waits until its last call has returned. Called by that handler itself it would
// wait for ever.
//
// Source: tools/cache/shared_informer.go ShutDownEventHandler
func ShutDownEventHandler(informer SharedInformer, handle ResourceEventHandlerRegistration) error {
	if err := informer.RemoveEventHandler(handle); err != nil {
		return err
	}
	<-handle.ShutdownChan()
	return nil
}
