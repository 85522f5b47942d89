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
	"example.com/informerstack/internal/done"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

var errNilHandler = errors.New("handler is nil")

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
	processor     processor
	deltas        deltaProcessor
	synced        chan struct{}
	stored        storedVersion
	size          store.Counter // the indexer without its wrapper

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
		!options.Kind.Empty() {
		panic("informer: Namespace, selectors and kinds are options of New, not of a ListerWatcher")
	}
	indexer := options.newIndexer()
	s := &sharedIndexInformer{
		listerWatcher: lw,
		exampleObject: exampleObject,
		options:       options,
		name:          fmt.Sprintf("SharedIndexInformer %T", exampleObject),
		indexer:       indexer,
		synced:        make(chan struct{}),
		stored:        storedVersion{bookmark: indexer.Bookmark, stopped: make(chan struct{})},
		size:          indexer.(store.Counter),
		resync:        resyncPlan{checkPeriod: max(options.ResyncPeriod, 0)},
	}
	if description := options.Reflector.TypeDescription; description != "" {
		s.name = "SharedIndexInformer " + description
	}
	if options.WrapIndexer != nil {
		s.indexer = options.WrapIndexer(indexer)
	}
	s.processor.log = newChangeLog()
	s.deltas = deltaProcessor{
		mu: &s.processor.mu, store: s.indexer, emit: s.processor.distributeLocked,
		lost: s.stored.lose,
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
	versioned := s.options.newQueue(
		klog.FromContext(ctx), s.exampleObject, s.indexer, s.stored.set)
	s.deltas.stored = versioned.Stored
	var queue deltafifo.Queue = versioned
	if s.options.WrapQueue != nil {
		queue = s.options.WrapQueue(queue)
	}
	options := s.options.Reflector
	options.Name = cmp.Or(options.Name, s.name)
	options.ResyncPeriod = s.resync.checkPeriod
	options.ShouldResync = s.processor.shouldResync
	options.Progress = versioned.Received
	newReflector := s.options.NewReflector
	if newReflector == nil {
		newReflector = reflector.New
	}
	r := newReflector(s.listerWatcher, s.exampleObject, queue, options)
	s.reflector.Store(r)
	return &Controller{
		Reflector:    r,
		Queue:        queue,
		Process:      s.deltas.process,
		ProcessBatch: s.deltas.processBatch,
		RelistLost:   true,
	}
}

// closeSynced waits until the first list is stored, then marks the informer as synced. If the store
// refused a part of the list, it waits for the next one.
func (s *sharedIndexInformer) closeSynced(ctx context.Context, queue deltafifo.Queue) {
	select {
	case <-ctx.Done():
		return
	case <-queue.HasSyncedChecker().Done():
	}
	complete := func() (bool, error) { return !s.stored.incomplete, nil }
	if s.stored.wait(ctx, complete) == nil {
		s.processor.markSynced()
		close(s.synced)
	}
}

func (s *sharedIndexInformer) setStopped() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped.Store(true) // AddEventHandler holds mu, so it ends before the processor stops
	close(s.stored.stopped)
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
	l := newListener(s, handler, options)
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
	return s.indexer.AddIndexers(indexers)
}

func (s *sharedIndexInformer) GetStore() store.Store         { return s.indexer }
func (s *sharedIndexInformer) GetIndexer() store.Indexer     { return s.indexer }
func (s *sharedIndexInformer) HasSynced() bool               { return done.Is(s) }
func (s *sharedIndexInformer) HasSyncedChecker() DoneChecker { return s }
func (s *sharedIndexInformer) Name() string                  { return s.name }
func (s *sharedIndexInformer) Done() <-chan struct{}         { return s.synced }
func (s *sharedIndexInformer) IsStopped() bool               { return s.stopped.Load() }
