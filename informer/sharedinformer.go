// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/internal/freshness"
	"example.com/informerstack/internal/helpers/done"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

var errNilHandler = errors.New("handler is nil")

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
//   - Identity: an object is identified by namespace and name. If it is deleted and created again
//     while the watch is broken, handlers get an update of two objects with different UIDs. See
//     HandlerOptions.SplitRecreated.
//   - Shared: objects are not copied. A reader that modifies one modifies it for all readers.
//   - Independent: a slow handler delays no other, but its undelivered changes wait in memory. See
//     HandlerOptions.Coalesce and ResourceEventHandlerRegistration.Status.
//   - One run: an informer runs once. A second run needs a new informer.
//
// Every method may be called from any goroutine, even from a handler, before, during and after Run.
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
	// attempt. Without one it is nil, or says that the informer waits for a turn, see package
	// starts. It is nil once a watch is open again.
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
	// minute. The error is a *BehindError if ctx is done, if the informer has stopped, if the
	// server's resourceVersions are not numbers, if the queue does not report all that it holds, or
	// if the kind is known not to be served (see package served). Any other error means that
	// resourceVersion is not a positive decimal number. A handler may call it; that delays only
	// this handler.
	WaitForResourceVersion(ctx context.Context, resourceVersion string) error

	// IsStopped is true once Run has ended. Then handlers and indexers can no longer be added.
	IsStopped() bool
}

// SharedIndexInformer is a SharedInformer with indexes.
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

// sharedIndexInformer implements SharedIndexInformer. Its controller writes to the store, and its
// processor notifies the handlers.
//
//	S1  the store and the change log change only under processor.mu
//	S2  synced is closed  =>  the store has held a complete list, and all of it is in the log
//	S3  the informer was started  <=>  reflector != nil
//	S4  stopped  =>  no handler and no indexer is added any more
//
// No status takes a lock that is held while foreign code runs: mu is held during index functions
// and Options, the processor's mu during every call of the store.
//
// Source: tools/cache/shared_informer.go sharedIndexInformer
type sharedIndexInformer struct {
	listerWatcher reflector.ListerWatcher
	exampleObject runtime.Object
	options       Options
	name          string
	indexer       store.Indexer
	processor     *processor
	deltas        *deltaProcessor
	freshness     *freshness.Tracker // of the store
	synced        chan struct{}
	size          store.Counter // the indexer without its wrapper
	form          form
	reader        store.Indexer // the indexer as readers see it

	reflector atomic.Pointer[reflector.Reflector] // set under mu, as stopped is
	stopped   atomic.Bool

	mu     sync.Mutex
	resync resyncPlan
}

// NewSharedIndexInformer returns an informer of the collection that lw lists and watches. lw must
// not be nil. exampleObject is an example of the objects. Objects of other types are rejected; nil
// accepts any.
//
// Source: tools/cache/shared_informer.go NewSharedIndexInformerWithOptions
func NewSharedIndexInformer(
	lw reflector.ListerWatcher, exampleObject runtime.Object, options Options,
) SharedIndexInformer {
	if options.Namespace+options.LabelSelector+options.FieldSelector+options.ListKind != "" ||
		!options.Kind.Empty() || options.ReadAhead != nil {
		panic("informer: Namespace, selectors, kinds and ReadAhead are options of New, " +
			"not of a ListerWatcher")
	}
	form, options := newForm(options)
	tracker := options.newTracker()
	var s *sharedIndexInformer
	indexer := options.newIndexer(func() (string, bool) { // before the start, a test may fill it
		return tracker.Held().ResourceVersion, s.reflector.Load() != nil
	})
	s = &sharedIndexInformer{
		listerWatcher: lw,
		exampleObject: exampleObject,
		options:       options,
		name:          fmt.Sprintf("SharedIndexInformer %T", exampleObject),
		indexer:       indexer,
		processor:     newProcessor(),
		freshness:     tracker,
		synced:        make(chan struct{}),
		size:          indexer.(store.Counter),
		form:          form,
		resync:        resyncPlan{checkPeriod: max(options.ResyncPeriod, 0)},
	}
	if description := options.Reflector.TypeDescription; description != "" {
		s.name = "SharedIndexInformer " + description
	}
	if options.WrapIndexer != nil {
		s.indexer = options.WrapIndexer(indexer)
	}
	s.reader = form.reader(s.indexer)
	s.deltas = &deltaProcessor{
		mu: &s.processor.mu, store: s.indexer, stored: tracker.Stored,
		emit: s.processor.distributeLocked,
	}
	return s
}

func (s *sharedIndexInformer) Run(ctx context.Context) {
	// As in Controller.Run, a deferred wait would keep a panic from ending the process.
	defer utilruntime.HandleCrashWithContext(ctx)
	c := s.start(ctx)
	if c == nil {
		klog.FromContext(ctx).Info(
			"Warning: the informer has started, run more than once is not allowed",
			"informer", s.name)
		return
	}
	s.processor.start()
	syncWatch := make(chan struct{})
	go func() {
		defer close(syncWatch)
		s.closeSynced(ctx, c.Queue)
	}()
	c.Run(ctx)
	<-syncWatch
	s.setStopped()
	s.processor.stop()
}

// start creates the controller. It returns nil if the informer was started before.
func (s *sharedIndexInformer) start(ctx context.Context) *Controller {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reflector.Load() != nil {
		return nil
	}
	s.resync.fixed = true
	logger := klog.FromContext(ctx)
	queue := s.options.newQueue(s.exampleObject, deltafifo.Options{
		Logger: &logger, Metrics: s.options.Metrics, KnownObjects: s.indexer,
		Progress: s.freshness,
	})
	if s.options.WrapQueue != nil {
		queue = s.options.WrapQueue(queue)
	}
	options := s.options.Reflector
	options.Name = cmp.Or(options.Name, s.name)
	options.ResyncPeriod = s.resync.checkPeriod
	options.ShouldResync = s.processor.shouldResync
	newReflector := s.options.NewReflector
	if newReflector == nil {
		newReflector = reflector.New
	}
	lw := s.listerWatcher
	if s.options.WrapListerWatcher != nil {
		lw = s.options.WrapListerWatcher(ctx, lw, s.exampleObject)
	}
	r := newReflector(lw, s.exampleObject, followed{queue, s.freshness}, options)
	s.reflector.Store(r)
	return &Controller{
		Reflector:    r,
		Queue:        queue,
		Process:      s.deltas.process,
		ProcessBatch: s.deltas.processBatch,
		RelistLost:   true,
	}
}

// followed is the queue as the Store of the reflector, which finds the Tracker in it.
type followed struct {
	deltafifo.Queue
	tracker *freshness.Tracker
}

func (f followed) Followed() (any, *freshness.Tracker) { return f.Queue, f.tracker }

// closeSynced waits until a list is stored, then marks the informer as synced. If the store refuses
// a part of the first list, that is a later one.
func (s *sharedIndexInformer) closeSynced(ctx context.Context, queue deltafifo.Queue) {
	listed := s.freshness.Synced()
	select {
	case <-listed:
	case <-s.freshness.Blind(): // only the queue itself knows
		listed = queue.HasSyncedChecker().Done()
	case <-ctx.Done():
	}
	select {
	case <-listed:
		s.processor.markSynced() // it waits until the list is in the log: S2
		close(s.synced)
	case <-ctx.Done():
	}
}

func (s *sharedIndexInformer) setStopped() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped.Store(true) // AddEventHandler holds mu, so it ends before the processor stops
	s.freshness.Stop(ErrStopped)
}

func (s *sharedIndexInformer) AddEventHandler(
	handler ResourceEventHandler,
) (ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(handler, HandlerOptions{})
}

func (s *sharedIndexInformer) AddEventHandlerWithOptions(
	handler ResourceEventHandler, options HandlerOptions,
) (ResourceEventHandlerRegistration, error) {
	if handler == nil {
		return nil, errNilHandler
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.IsStopped() {
		return nil, fmt.Errorf("handler %s was not added to shared informer because it has stopped"+
			" already", handlerName(handler))
	}
	l := newListener(s, s.form.handler(handler), options)
	wanted := s.options.ResyncPeriod
	if options.ResyncPeriod != nil {
		wanted = *options.ResyncPeriod
	}
	period := s.resync.admit(l.logger, wanted)
	l.resync = resyncSchedule{period: period, next: time.Now().Add(period)}

	s.processor.mu.Lock()
	defer s.processor.mu.Unlock()
	var replay []any
	if s.reflector.Load() != nil {
		replay = s.indexer.List()
	}
	s.processor.addLocked(l, replay)
	return l, nil
}

func (s *sharedIndexInformer) RemoveEventHandler(handle ResourceEventHandlerRegistration) error {
	l, ok := handle.(*listener)
	if !ok {
		return fmt.Errorf("invalid key type %T", handle)
	}
	s.processor.mu.Lock()
	defer s.processor.mu.Unlock()
	s.processor.removeLocked(l)
	return nil
}

func (s *sharedIndexInformer) AddIndexers(indexers store.Indexers) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.IsStopped() {
		return errors.New("indexer was not added because it has stopped already")
	}
	return s.reader.AddIndexers(indexers)
}

func (s *sharedIndexInformer) GetStore() store.Store         { return s.reader }
func (s *sharedIndexInformer) GetIndexer() store.Indexer     { return s.reader }
func (s *sharedIndexInformer) HasSynced() bool               { return done.Is(s) }
func (s *sharedIndexInformer) HasSyncedChecker() DoneChecker { return s }
func (s *sharedIndexInformer) Name() string                  { return s.name }
func (s *sharedIndexInformer) Done() <-chan struct{}         { return s.synced }
func (s *sharedIndexInformer) IsStopped() bool               { return s.stopped.Load() }
