// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

var (
	errAlreadyStarted = errors.New("informer has already started")
	errNilHandler     = errors.New("handler is nil")
)

// lifecycle is the state of an informer. It never goes back.
type lifecycle int

const (
	ready lifecycle = iota
	started
	stopped
)

// sharedIndexInformer implements SharedIndexInformer. Its controller writes to the store, and its
// processor notifies the handlers.
//
//	S1  the store and the change log change only under processor.mu
//	S2  synced is closed  =>  the store has held a complete list, and all of it is in the log
//	S3  controller != nil  <=>  lifecycle > ready
//
// Source: tools/cache/shared_informer.go sharedIndexInformer
type sharedIndexInformer struct {
	listerWatcher reflector.ListerWatcher
	exampleObject runtime.Object
	options       SharedIndexInformerOptions
	name          string
	indexer       store.Indexer
	bookmark      func(resourceVersion string) // method of the indexer without its wrapper
	processor     processor
	deltas        deltaProcessor
	synced        chan struct{}
	stored        storedVersion

	mu                sync.Mutex
	lifecycle         lifecycle
	controller        *controller
	resync            resyncPlan
	transform         store.TransformFunc
	watchErrorHandler reflector.WatchErrorHandler
}

// NewSharedIndexInformer returns an informer of the collection that lw lists and watches. lw must
// not be nil. exampleObject is an example of the objects. Objects of other types are rejected; nil
// accepts any.
//
// Source: tools/cache/shared_informer.go NewSharedIndexInformerWithOptions
func NewSharedIndexInformer(
	lw reflector.ListerWatcher, exampleObject runtime.Object, options SharedIndexInformerOptions,
) SharedIndexInformer {
	indexer := newIndexer(options.Indexers, options.StoreMetrics)
	s := &sharedIndexInformer{
		listerWatcher:     lw,
		exampleObject:     exampleObject,
		options:           options,
		name:              fmt.Sprintf("SharedIndexInformer %T", exampleObject),
		indexer:           indexer,
		bookmark:          indexer.Bookmark,
		synced:            make(chan struct{}),
		stored:            storedVersion{stopped: make(chan struct{})},
		resync:            resyncPlan{checkPeriod: max(options.ResyncPeriod, 0)},
		transform:         options.Transform,
		watchErrorHandler: options.WatchErrorHandler,
	}
	if options.ObjectDescription != "" {
		s.name = "SharedIndexInformer " + options.ObjectDescription
	}
	if options.WrapIndexer != nil {
		s.indexer = options.WrapIndexer(indexer)
	}
	s.processor.log = newChangeLog()
	s.deltas = deltaProcessor{
		store: s.indexer,
		keyOf: store.DeletionHandlingMetaNamespaceKeyFunc,
		emit:  s.processor.distributeLocked,
		lost:  s.stored.lose,
	}
	return s
}

// Run implements SharedInformer.
func (s *sharedIndexInformer) Run(ctx context.Context) {
	// As in controller.Run, a deferred wait would keep a panic from ending the process.
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
		s.closeSynced(ctx, c)
	}()
	c.Run(ctx)
	<-syncWatch
	s.setStopped()
	s.processor.stop()
}

// start creates the controller. It returns nil if the informer was started before.
func (s *sharedIndexInformer) start(ctx context.Context) *controller {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lifecycle != ready {
		return nil
	}
	s.lifecycle = started
	s.resync.fixed = true
	reflectorOptions := s.options.Reflector
	reflectorOptions.Name = cmp.Or(reflectorOptions.Name, s.name)
	inner, queue := s.options.newQueue(klog.FromContext(ctx), s.exampleObject, s.indexer, s.reached)
	reflectorOptions.Progress = received(inner, s.options.Reflector.Progress)
	s.deltas.stored = inner.Stored
	s.controller = newController(Config{
		Queue:             queue,
		ListerWatcher:     s.listerWatcher,
		ObjectType:        s.exampleObject,
		ObjectDescription: s.options.ObjectDescription,
		FullResyncPeriod:  s.resync.checkPeriod,
		ShouldResync:      s.processor.shouldResync,
		Process: func(obj any, isInInitialList bool) error {
			s.processor.mu.Lock()
			defer s.processor.mu.Unlock()
			return s.deltas.process(obj, isInInitialList)
		},
		ProcessBatch: func(deltas []deltafifo.Delta, isInInitialList bool) error {
			s.processor.mu.Lock()
			defer s.processor.mu.Unlock()
			return s.deltas.processBatch(deltas, isInInitialList)
		},
		Transform:         s.transform,
		WatchErrorHandler: s.watchErrorHandler,
		Reflector:         reflectorOptions,
		Prepare:           s.options.Prepare,
	})
	s.controller.repairs = true
	return s.controller
}

// closeSynced waits until the first list is stored, then marks the informer as synced. If the store
// refused a part of the list, it waits for the next one.
func (s *sharedIndexInformer) closeSynced(ctx context.Context, c *controller) {
	select {
	case <-ctx.Done():
		return
	case <-c.HasSyncedChecker().Done():
	}
	if s.stored.waitComplete(ctx) == nil {
		s.processor.markSynced()
		close(s.synced)
	}
}

func (s *sharedIndexInformer) setStopped() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lifecycle = stopped // AddEventHandler holds mu, so it ends before the processor stops
	close(s.stored.stopped)
}

// AddEventHandler implements SharedInformer.
func (s *sharedIndexInformer) AddEventHandler(
	handler ResourceEventHandler,
) (ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(handler, HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements SharedInformer.
func (s *sharedIndexInformer) AddEventHandlerWithResyncPeriod(
	handler ResourceEventHandler, resyncPeriod time.Duration,
) (ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(handler, HandlerOptions{ResyncPeriod: &resyncPeriod})
}

// AddEventHandlerWithOptions implements SharedInformer.
func (s *sharedIndexInformer) AddEventHandlerWithOptions(
	handler ResourceEventHandler, options HandlerOptions,
) (ResourceEventHandlerRegistration, error) {
	if handler == nil {
		return nil, errNilHandler
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lifecycle == stopped {
		return nil, fmt.Errorf("handler %s was not added to shared informer because it has stopped"+
			" already", handlerName(handler))
	}
	logger := klog.Background()
	if options.Logger != nil {
		logger = *options.Logger
	}
	wanted := s.options.ResyncPeriod
	if options.ResyncPeriod != nil {
		wanted = *options.ResyncPeriod
	}
	schedule := newResyncSchedule(s.resync.admit(logger, wanted), time.Now())
	l := newListener(s.name, handler, options, schedule)

	s.processor.mu.Lock()
	defer s.processor.mu.Unlock()
	var replay []any
	if s.lifecycle == started {
		replay = s.indexer.List()
	}
	s.processor.addLocked(l, replay)
	return l, nil
}

// RemoveEventHandler implements SharedInformer.
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

// AddIndexers implements SharedIndexInformer.
func (s *sharedIndexInformer) AddIndexers(indexers store.Indexers) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lifecycle == stopped {
		return errors.New("indexer was not added because it has stopped already")
	}
	return s.indexer.AddIndexers(indexers)
}

// SetWatchErrorHandler implements SharedInformer.
func (s *sharedIndexInformer) SetWatchErrorHandler(handler reflector.WatchErrorHandler) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lifecycle != ready {
		return errAlreadyStarted
	}
	s.watchErrorHandler = handler
	return nil
}

// SetTransform implements SharedInformer.
func (s *sharedIndexInformer) SetTransform(transform store.TransformFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lifecycle != ready {
		return errAlreadyStarted
	}
	s.transform = transform
	return nil
}

// GetStore implements SharedInformer.
func (s *sharedIndexInformer) GetStore() store.Store { return s.indexer }

// GetIndexer implements SharedIndexInformer.
func (s *sharedIndexInformer) GetIndexer() store.Indexer { return s.indexer }

// HasSynced implements SharedInformer.
func (s *sharedIndexInformer) HasSynced() bool { return IsDone(s) }

// HasSyncedChecker implements SharedInformer.
func (s *sharedIndexInformer) HasSyncedChecker() DoneChecker { return s }

// Name implements DoneChecker.
func (s *sharedIndexInformer) Name() string { return s.name }

// Done implements DoneChecker. It closes when the store has held a complete list.
func (s *sharedIndexInformer) Done() <-chan struct{} { return s.synced }

// IsStopped implements SharedInformer.
func (s *sharedIndexInformer) IsStopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lifecycle == stopped
}

// GetController implements SharedInformer.
func (s *sharedIndexInformer) GetController() Controller { return controllerView{s} }

// controllerView is a shared informer as a Controller that cannot be run.
type controllerView struct{ *sharedIndexInformer }

// Run is a no-op. The informer's own Run runs the controller.
func (controllerView) Run(context.Context) {}
