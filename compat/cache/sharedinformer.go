// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"example.com/informerstack/informer"
)

// SharedInformer keeps one copy of a collection for any number of handlers. It keeps the promises of
// informer.SharedInformer, under client-go's method names.
//
// Source: tools/cache/shared_informer.go SharedInformer
type SharedInformer interface {
	// AddEventHandler adds a handler that resyncs with the informer's own period.
	AddEventHandler(handler ResourceEventHandler) (ResourceEventHandlerRegistration, error)
	// AddEventHandlerWithResyncPeriod adds a handler that resyncs with a period of its own.
	AddEventHandlerWithResyncPeriod(handler ResourceEventHandler, resyncPeriod time.Duration) (ResourceEventHandlerRegistration, error)
	// AddEventHandlerWithOptions adds a handler with options.
	AddEventHandlerWithOptions(handler ResourceEventHandler, options HandlerOptions) (ResourceEventHandlerRegistration, error)
	// RemoveEventHandler removes a handler. A call in flight goes on.
	RemoveEventHandler(handle ResourceEventHandlerRegistration) error
	// GetStore returns the copy, which is for reading.
	GetStore() Store
	// GetController returns a Controller that tells the informer's state. Its Run does nothing.
	//
	// Deprecated: the informer itself tells.
	GetController() Controller
	// Run is RunWithContext until stopCh is closed.
	Run(stopCh <-chan struct{})
	// RunWithContext lists and watches until ctx is done. It runs once.
	RunWithContext(ctx context.Context)
	// HasSynced is true once the store has held a complete list.
	HasSynced() bool
	// HasSyncedChecker returns HasSynced as a channel.
	HasSyncedChecker() DoneChecker
	// LastSyncResourceVersion is up to where the collection was followed; "" before the first list.
	LastSyncResourceVersion() string
	// SetWatchErrorHandler sets what is told why listing or watching failed. The error says that the informer has started.
	SetWatchErrorHandler(handler WatchErrorHandler) error
	// SetWatchErrorHandlerWithContext is SetWatchErrorHandler for a handler that takes a context.
	SetWatchErrorHandlerWithContext(handler WatchErrorHandlerWithContext) error
	// SetTransform sets what each received object goes through before it is kept. The error says that the informer has
	// started.
	SetTransform(handler TransformFunc) error
	// IsStopped is true once a run has ended.
	IsStopped() bool
}

// SharedIndexInformer is a SharedInformer whose store has indexes.
//
// Source: tools/cache/shared_informer.go SharedIndexInformer
type SharedIndexInformer interface {
	SharedInformer
	// AddIndexers adds index functions and indexes what is stored.
	AddIndexers(indexers Indexers) error
	// GetIndexer returns the copy, which is for reading.
	GetIndexer() Indexer
}

// SharedIndexInformerOptions configures a shared informer.
//
// Source: tools/cache/shared_informer.go SharedIndexInformerOptions
type SharedIndexInformerOptions struct {
	// ResyncPeriod is the resync period of handlers that ask for none of their own. 0: no handler ever gets one.
	ResyncPeriod time.Duration
	// Indexers are the store's indexes.
	Indexers Indexers
	// ObjectDescription replaces the example object's type in messages.
	ObjectDescription string
	// Identifier names the informer in metrics. There are none unless it is reserved.
	Identifier InformerNameAndResource
	// InformerMetricsProvider makes the metrics; nil means the one of SetInformerMetricsProvider.
	InformerMetricsProvider InformerMetricsProvider
}

// NewSharedInformer returns an informer without indexes.
//
// Source: tools/cache/shared_informer.go NewSharedInformer
func NewSharedInformer(lw ListerWatcher, exampleObject runtime.Object, defaultEventHandlerResyncPeriod time.Duration) SharedInformer {
	return NewSharedIndexInformer(lw, exampleObject, defaultEventHandlerResyncPeriod, Indexers{})
}

// NewSharedIndexInformer returns an informer with indexes.
//
// Source: tools/cache/shared_informer.go NewSharedIndexInformer
func NewSharedIndexInformer(lw ListerWatcher, exampleObject runtime.Object, defaultEventHandlerResyncPeriod time.Duration, indexers Indexers) SharedIndexInformer {
	return NewSharedIndexInformerWithOptions(lw, exampleObject, SharedIndexInformerOptions{
		ResyncPeriod: defaultEventHandlerResyncPeriod,
		Indexers:     indexers,
	})
}

// NewSharedIndexInformerWithOptions returns an informer of what lw lists. exampleObject is an example of the objects: others
// are not accepted; nil accepts any.
//
// Source: tools/cache/shared_informer.go NewSharedIndexInformerWithOptions
func NewSharedIndexInformerWithOptions(lw ListerWatcher, exampleObject runtime.Object, options SharedIndexInformerOptions) SharedIndexInformer {
	coreOptions := informer.SharedIndexInformerOptions{
		ResyncPeriod:      options.ResyncPeriod,
		Indexers:          options.Indexers,
		ObjectDescription: options.ObjectDescription,
		QueueOptions:      queueOptions(exampleObject, options.Identifier, options.InformerMetricsProvider),
		StoreMetrics:      storeMetrics(options.Identifier, options.InformerMetricsProvider),
		Prepare:           prepare,
	}
	detector := NewCacheMutationDetector(fmt.Sprintf("%T", exampleObject))
	coreOptions.WrapIndexer = func(core Indexer) Indexer {
		if _, off := detector.(noDetector); off {
			return newCache(core)
		}
		return watchedCache{newCache(core), detector}
	}
	return &sharedInformer{
		core:     informer.NewSharedIndexInformer(ToListerWatcherWithContext(lw), exampleObject, coreOptions),
		detector: detector,
	}
}

// core is the informer that does the work. Its methods serve as they are, unless client-go has another signature.
type core = informer.SharedIndexInformer

// sharedInformer is an informer of the core under client-go's method names.
type sharedInformer struct {
	core
	detector MutationDetector
}

// RunWithContext implements SharedInformer.
func (s *sharedInformer) RunWithContext(ctx context.Context) {
	detecting, stop := context.WithCancel(ctx)
	var group wait.Group
	group.StartWithChannel(detecting.Done(), s.detector.Run)
	s.core.Run(ctx)
	stop()
	group.Wait()
}

// Run implements SharedInformer.
func (s *sharedInformer) Run(stopCh <-chan struct{}) {
	s.RunWithContext(wait.ContextForChannel(stopCh))
}

// AddEventHandler implements SharedInformer.
func (s *sharedInformer) AddEventHandler(handler ResourceEventHandler) (ResourceEventHandlerRegistration, error) {
	return s.core.AddEventHandler(handler)
}

// AddEventHandlerWithResyncPeriod implements SharedInformer.
func (s *sharedInformer) AddEventHandlerWithResyncPeriod(handler ResourceEventHandler, resyncPeriod time.Duration) (ResourceEventHandlerRegistration, error) {
	return s.core.AddEventHandlerWithResyncPeriod(handler, resyncPeriod)
}

// AddEventHandlerWithOptions implements SharedInformer.
func (s *sharedInformer) AddEventHandlerWithOptions(handler ResourceEventHandler, options HandlerOptions) (ResourceEventHandlerRegistration, error) {
	return s.core.AddEventHandlerWithOptions(handler, options)
}

// RemoveEventHandler implements SharedInformer.
func (s *sharedInformer) RemoveEventHandler(handle ResourceEventHandlerRegistration) error {
	registration, ok := handle.(informer.ResourceEventHandlerRegistration)
	if !ok {
		return fmt.Errorf("invalid key type %T", handle)
	}
	return s.core.RemoveEventHandler(registration)
}

// GetController implements SharedInformer.
func (s *sharedInformer) GetController() Controller {
	return sharedController{controller{s.core.GetController()}}
}

// SetWatchErrorHandler implements SharedInformer.
func (s *sharedInformer) SetWatchErrorHandler(handler WatchErrorHandler) error {
	return s.SetWatchErrorHandlerWithContext(handler.withContext())
}

// SetWatchErrorHandlerWithContext implements SharedInformer.
func (s *sharedInformer) SetWatchErrorHandlerWithContext(handler WatchErrorHandlerWithContext) error {
	return s.core.SetWatchErrorHandler(coreHandler(handler))
}

// ShutDownEventHandler removes a handler and waits until its last call has returned. Called by that handler itself it would
// wait for ever.
//
// Source: tools/cache/shared_informer.go ShutDownEventHandler
func ShutDownEventHandler(informer SharedInformer, handle ResourceEventHandlerRegistration) error {
	if err := informer.RemoveEventHandler(handle); err != nil {
		return err
	}
	shutdown, ok := handle.(interface{ ShutdownChan() <-chan struct{} })
	if !ok {
		return fmt.Errorf("%T does not tell when its handler has ended", handle)
	}
	<-shutdown.ShutdownChan()
	return nil
}
