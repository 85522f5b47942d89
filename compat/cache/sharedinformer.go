// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"example.com/informerstack/compat/internal/found"
	"example.com/informerstack/compat/internal/setters"
	"example.com/informerstack/deltafifo"
	"example.com/informerstack/informer"
	"example.com/informerstack/observe/journal"
	"example.com/informerstack/reflector"
)

// SharedInformer keeps one copy of a collection for any number of handlers. It has the contract of
// informer.SharedInformer, and client-go's method names.
//
// Source: tools/cache/shared_informer.go SharedInformer
type SharedInformer interface {
	// AddEventHandler adds a handler that resyncs with the informer's own period.
	AddEventHandler(handler ResourceEventHandler) (ResourceEventHandlerRegistration, error)
	// AddEventHandlerWithResyncPeriod adds a handler that resyncs with a period of its own.
	AddEventHandlerWithResyncPeriod(
		handler ResourceEventHandler, resyncPeriod time.Duration,
	) (ResourceEventHandlerRegistration, error)
	// AddEventHandlerWithOptions adds a handler with options.
	AddEventHandlerWithOptions(
		handler ResourceEventHandler, options HandlerOptions,
	) (ResourceEventHandlerRegistration, error)
	// RemoveEventHandler removes a handler. It does not wait for a call in flight.
	RemoveEventHandler(handle ResourceEventHandlerRegistration) error
	// GetStore returns the store. Callers may only read it.
	GetStore() Store
	// GetController returns a Controller that reports the informer's state. Its Run is a no-op.
	//
	// Deprecated: the informer has the same methods.
	GetController() Controller
	// Run is RunWithContext until stopCh is closed.
	Run(stopCh <-chan struct{})
	// RunWithContext lists and watches until ctx is done. It runs once.
	RunWithContext(ctx context.Context)
	// HasSynced is true once the store has held a complete list.
	HasSynced() bool
	// HasSyncedChecker returns HasSynced as a channel.
	HasSyncedChecker() DoneChecker
	// LastSyncResourceVersion is the resourceVersion of the last list, change or bookmark that was
	// received; "" before the first list.
	LastSyncResourceVersion() string
	// SetWatchErrorHandler sets the function that is called with each error of listing or watching.
	// It fails if the informer has started.
	SetWatchErrorHandler(handler WatchErrorHandler) error
	// SetWatchErrorHandlerWithContext is SetWatchErrorHandler for a handler that takes a context.
	SetWatchErrorHandlerWithContext(handler WatchErrorHandlerWithContext) error
	// SetTransform sets the function that transforms each received object before it is stored. It
	// fails if the informer has started.
	SetTransform(handler TransformFunc) error
	// IsStopped is true once a run has ended.
	IsStopped() bool
}

// SharedIndexInformer is a SharedInformer with indexes in its store.
//
// Source: tools/cache/shared_informer.go SharedIndexInformer
type SharedIndexInformer interface {
	SharedInformer
	// AddIndexers adds index functions and indexes the stored objects.
	AddIndexers(indexers Indexers) error
	// GetIndexer returns the store. Callers may only read it.
	GetIndexer() Indexer
}

// SharedIndexInformerOptions configures a shared informer.
//
// Source: tools/cache/shared_informer.go SharedIndexInformerOptions
type SharedIndexInformerOptions struct {
	// ResyncPeriod is the default resync period of handlers. With 0 no handler gets a resync.
	ResyncPeriod time.Duration
	// Indexers are the store's indexes.
	Indexers Indexers
	// ObjectDescription replaces the example object's type in messages.
	ObjectDescription string
	// Identifier names the informer in metrics. Without a reserved one there are no metrics.
	Identifier InformerNameAndResource
	// InformerMetricsProvider makes the metrics; nil means the one of SetInformerMetricsProvider.
	InformerMetricsProvider InformerMetricsProvider
}

// NewSharedInformer returns an informer without indexes.
//
// Source: tools/cache/shared_informer.go NewSharedInformer
func NewSharedInformer(
	lw ListerWatcher, exampleObject runtime.Object, defaultEventHandlerResyncPeriod time.Duration,
) SharedInformer {
	return NewSharedIndexInformer(lw, exampleObject, defaultEventHandlerResyncPeriod, Indexers{})
}

// NewSharedIndexInformer returns an informer with indexes.
//
// Source: tools/cache/shared_informer.go NewSharedIndexInformer
func NewSharedIndexInformer(
	lw ListerWatcher, exampleObject runtime.Object, defaultEventHandlerResyncPeriod time.Duration,
	indexers Indexers,
) SharedIndexInformer {
	return NewSharedIndexInformerWithOptions(lw, exampleObject, SharedIndexInformerOptions{
		ResyncPeriod: defaultEventHandlerResyncPeriod,
		Indexers:     indexers,
	})
}

// NewSharedIndexInformerWithOptions returns an informer of the collection that lw lists and
// watches. exampleObject is an example of the objects. Objects of other types are rejected; nil
// accepts any.
//
// Source: tools/cache/shared_informer.go NewSharedIndexInformerWithOptions
func NewSharedIndexInformerWithOptions(
	lw ListerWatcher, exampleObject runtime.Object, options SharedIndexInformerOptions,
) SharedIndexInformer {
	detector := NewCacheMutationDetector(fmt.Sprintf("%T", exampleObject))
	s := &sharedInformer{detector: detector, selected: newSelection()}
	coreOptions := informer.Options{
		ResyncPeriod: options.ResyncPeriod,
		Indexers:     options.Indexers,
		Reflector: reflector.Options{
			TypeDescription: cmp.Or(options.ObjectDescription, describeKind(exampleObject))},
		StoreMetrics: storeMetrics(options.Identifier, options.InformerMetricsProvider),
	}
	coreOptions.WrapIndexer = func(indexer Indexer) Indexer {
		if _, off := detector.(noDetector); off {
			return newCache(indexer)
		}
		return watchedCache{newCache(indexer), detector}
	}
	coreOptions.NewQueue = func(o deltafifo.Options) deltafifo.Queue {
		return withBatchGate(
			newQueue(o, exampleObject, options.Identifier, options.InformerMetricsProvider))
	}
	coreOptions.NewReflector = func(
		lw reflector.ListerWatcher, expectedType any, queue reflector.Store, o reflector.Options,
	) *reflector.Reflector {
		return newReflector(lw, expectedType, queue, s.setters.Start(o), s.selected)
	}
	s.core = informer.NewSharedIndexInformer(
		ToListerWatcherWithContext(lw), exampleObject, coreOptions)
	s.reads = newReadCache(exampleObject, s.core.GetIndexer())
	found.Add("", s, func(s *sharedInformer) any { return viewed{s.core, s.reads, s.selected} })
	return s
}

// describeKind returns the kind of an object that has one in place of a Go type, as the reflector
// does; "" otherwise.
func describeKind(exampleObject runtime.Object) string {
	switch exampleObject.(type) {
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		if kind := exampleObject.GetObjectKind().GroupVersionKind(); !kind.Empty() {
			return kind.String()
		}
	}
	return ""
}

// core is the informer inside. Its methods are used as they are, unless client-go has another
// signature.
type core = informer.SharedIndexInformer

// sharedInformer is an informer of the core under client-go's method names.
type sharedInformer struct {
	core
	setters  setters.Setters
	detector MutationDetector
	reads    *readCache // nil if reads are not noted
	selected *selection // nil if requests are not looked at
	ran      atomic.Bool
}

// RunWithContext implements SharedInformer.
func (s *sharedInformer) RunWithContext(ctx context.Context) {
	if s.ran.Swap(true) {
		s.core.Run(ctx) // logs that the informer runs only once
		return
	}
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
func (s *sharedInformer) AddEventHandler(
	handler ResourceEventHandler,
) (ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(handler, HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements SharedInformer.
func (s *sharedInformer) AddEventHandlerWithResyncPeriod(
	handler ResourceEventHandler, resyncPeriod time.Duration,
) (ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(handler, HandlerOptions{ResyncPeriod: &resyncPeriod})
}

// AddEventHandlerWithOptions implements SharedInformer.
func (s *sharedInformer) AddEventHandlerWithOptions(
	handler ResourceEventHandler, options HandlerOptions,
) (ResourceEventHandlerRegistration, error) {
	j := found.Journal()
	if j == nil || handler == nil {
		return s.core.AddEventHandlerWithOptions(handler, options)
	}
	noted := journal.NewHandler(j, s.core.Status().Name, handler)
	registration, err := s.core.AddEventHandlerWithOptions(noted, options)
	if err == nil {
		noted.Named(registration.Status().Name)
		noted.Pending(func() time.Duration { return registration.Status().OldestPending })
	}
	return registration, err
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
	return sharedController{s.core}
}

// GetStore implements SharedInformer.
func (s *sharedInformer) GetStore() Store { return s.GetIndexer() }

// GetIndexer implements SharedIndexInformer.
func (s *sharedInformer) GetIndexer() Indexer {
	if s.reads != nil {
		return s.reads
	}
	return s.core.GetIndexer()
}

// SetWatchErrorHandler implements SharedInformer.
func (s *sharedInformer) SetWatchErrorHandler(handler WatchErrorHandler) error {
	return s.SetWatchErrorHandlerWithContext(handler.withContext())
}

// SetWatchErrorHandlerWithContext implements SharedInformer.
func (s *sharedInformer) SetWatchErrorHandlerWithContext(
	handler WatchErrorHandlerWithContext,
) error {
	return s.setters.SetWatchErrorHandler(coreHandler(handler))
}

// SetTransform implements SharedInformer.
func (s *sharedInformer) SetTransform(transform TransformFunc) error {
	return s.setters.SetTransform(transform)
}

// ShutDownEventHandler removes a handler and waits until its last call has returned. If the handler
// itself calls it, it waits for ever.
//
// Source: tools/cache/shared_informer.go ShutDownEventHandler
func ShutDownEventHandler(informer SharedInformer, handle ResourceEventHandlerRegistration) error {
	if err := informer.RemoveEventHandler(handle); err != nil {
		return err
	}
	ending, ok := handle.(endingRegistration)
	if !ok {
		return fmt.Errorf("%T does not report when its handler has ended", handle)
	}
	<-ending.ShutdownChan()
	return nil
}

// endingRegistration is a handle that reports the end of its handler. Those of this package do.
type endingRegistration interface {
	// ShutdownChan returns a channel that closes when the handler was removed and its last call has
	// returned.
	ShutdownChan() <-chan struct{}
}
