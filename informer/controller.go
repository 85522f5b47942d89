// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// restartProcessing is the pause before processing resumes after a panic that did not end the
// process.
const restartProcessing = time.Second

// Config configures a Controller. Queue, ListerWatcher and Process are required.
//
// Source: tools/cache/controller.go Config
type Config struct {
	// Queue holds the changes between the reflector and Process.
	Queue deltafifo.Queue
	// ListerWatcher lists and watches the collection.
	ListerWatcher reflector.ListerWatcher
	// Process consumes the items of Queue, in one goroutine. Its error is logged; the item is gone.
	Process deltafifo.PopProcessFunc
	// ProcessBatch consumes batches. It is used if it is set and Queue is a
	// deltafifo.QueueWithBatch.
	ProcessBatch deltafifo.ProcessBatchFunc

	// ObjectType is an example of the objects. Objects of other types are rejected; nil accepts
	// any.
	ObjectType runtime.Object
	// ObjectDescription replaces the name of ObjectType in messages.
	ObjectDescription string

	// FullResyncPeriod is the time between two calls of ShouldResync; 0 means never.
	FullResyncPeriod time.Duration
	// ShouldResync decides whether Queue.Resync is called; nil means always.
	ShouldResync func() bool

	// Transform changes each received object once, before it enters Queue.
	Transform store.TransformFunc
	// WatchErrorHandler is called with each error of listing or watching; nil means
	// reflector.DefaultWatchErrorHandler.
	WatchErrorHandler reflector.WatchErrorHandler

	// Reflector has the other options of the reflector. The fields above take precedence.
	Reflector reflector.Options

	// Prepare, if set, is called at the start of Run. It may change every field except Queue. It is
	// for settings that are not known before Run.
	Prepare func(*Config)
}

// Controller moves changes from a ListerWatcher through a Queue to a process function. It is the
// engine of an informer.
//
// Source: tools/cache/controller.go Controller
type Controller interface {
	// Run lists, watches and processes until ctx is done. It returns when the reflector and a
	// running process function have ended. Items that are still queued are not processed. A second
	// Run reports an error and returns.
	Run(ctx context.Context)
	// HasSynced is true once the first list has been processed. It is the queue's HasSynced.
	HasSynced() bool
	// HasSyncedChecker returns HasSynced as a channel.
	HasSyncedChecker() DoneChecker
	// LastSyncResourceVersion is the resourceVersion of the last list, change or bookmark that was
	// received; "" before the first list.
	LastSyncResourceVersion() string
}

// NewController returns a Controller that does not run yet.
//
// Source: tools/cache/controller.go New
func NewController(config *Config) Controller { return newController(*config) }

// controller uses two goroutines: one runs the reflector, which fills the queue; that of Run
// empties the queue.
type controller struct {
	config  Config
	repairs bool // what was popped and could not be processed is listed again
	started atomic.Bool

	mu        sync.Mutex
	reflector *reflector.Reflector // nil before Run
}

func newController(config Config) *controller { return &controller{config: config} }

// Run implements Controller.
func (c *controller) Run(ctx context.Context) {
	// A panic of the process function passes through here. A deferred wait for the reflector would
	// block for ever and hide the panic.
	defer utilruntime.HandleCrashWithContext(ctx)
	if c.started.Swap(true) {
		utilruntime.HandleErrorWithContext(ctx, nil,
			"The controller has been started already; it runs once")
		return
	}
	if c.config.Prepare != nil {
		c.config.Prepare(&c.config)
	}
	r := c.newReflector()
	context.AfterFunc(ctx, c.config.Queue.Close) // wakes Pop
	reflectorDone := make(chan struct{})
	go func() {
		defer close(reflectorDone)
		r.Run(ctx)
	}()
	wait.UntilWithContext(ctx, c.processUntilClosed, restartProcessing)
	<-reflectorDone
}

// newReflector creates the reflector from the config.
func (c *controller) newReflector() *reflector.Reflector {
	options := c.config.Reflector
	options.TypeDescription = cmp.Or(c.config.ObjectDescription, options.TypeDescription)
	options.ResyncPeriod = cmp.Or(c.config.FullResyncPeriod, options.ResyncPeriod)
	if c.config.ShouldResync != nil {
		options.ShouldResync = c.config.ShouldResync
	}
	if c.config.Transform != nil {
		options.Transform = c.config.Transform
	}
	if c.config.WatchErrorHandler != nil {
		options.WatchErrorHandler = c.config.WatchErrorHandler
	}
	r := reflector.New(c.config.ListerWatcher, c.config.ObjectType, c.config.Queue, options)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reflector = r
	return r
}

// processUntilClosed pops and processes until ctx is done, or the queue is closed and empty.
func (c *controller) processUntilClosed(ctx context.Context) {
	pop := func() error {
		_, err := c.config.Queue.Pop(c.config.Process)
		return err
	}
	if queue, ok := c.config.Queue.(deltafifo.QueueWithBatch); ok && c.config.ProcessBatch != nil {
		pop = func() error { return queue.PopBatch(c.config.ProcessBatch, c.config.Process) }
	}
	for ctx.Err() == nil {
		switch err := c.repaired(pop); {
		case errors.Is(err, deltafifo.ErrFIFOClosed):
			return
		case err != nil:
			klog.FromContext(ctx).Error(err, "Processing a change failed")
		}
	}
}

// repaired pops, and asks for a relist if what was popped is lost. It does so after the queue has
// noted the failure: a list that arrives before that does not repair it.
func (c *controller) repaired(pop func() error) error {
	err := errProcessPanicked
	defer func() {
		if c.repairs && err != nil && !errors.Is(err, deltafifo.ErrFIFOClosed) {
			c.running().Relist(err)
		}
	}()
	err = pop()
	return err
}

// HasSynced implements Controller.
func (c *controller) HasSynced() bool { return c.config.Queue.HasSynced() }

// HasSyncedChecker implements Controller.
func (c *controller) HasSyncedChecker() DoneChecker { return c.config.Queue.HasSyncedChecker() }

// LastSyncResourceVersion implements Controller.
func (c *controller) LastSyncResourceVersion() string { return c.status().ResourceVersion }

// status returns the reflector's Status; the zero Status before Run.
func (c *controller) status() reflector.Status {
	if r := c.running(); r != nil {
		return r.Status()
	}
	return reflector.Status{}
}

// running returns the reflector, nil before Run.
func (c *controller) running() *reflector.Reflector {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reflector
}

// InformerOptions configures an informer with a single handler. ListerWatcher is required.
//
// Source: tools/cache/controller.go InformerOptions
type InformerOptions struct {
	// Logger is the queue's logger; nil means klog.Background().
	Logger *klog.Logger
	// ListerWatcher lists and watches the collection.
	ListerWatcher reflector.ListerWatcher
	// ObjectType is an example of the objects. Objects of other types are rejected; nil accepts
	// any.
	ObjectType runtime.Object
	// Handler is notified of changes. It may be nil.
	Handler ResourceEventHandler
	// ResyncPeriod is the time between two replays of the store to Handler; 0 means never.
	ResyncPeriod time.Duration
	// Indexers are the store's indexes.
	Indexers store.Indexers
	// Transform changes each received object once, before it is stored.
	Transform store.TransformFunc

	// Reflector has the other options of the reflector.
	Reflector reflector.Options
	// QueueOptions choose and observe the queue.
	QueueOptions
	// StoreMetrics receives the store's numbers.
	StoreMetrics store.Metrics
	// Prepare is Config.Prepare.
	Prepare func(*Config)
}

// NewInformerWithOptions returns a store, and the Controller that fills it while it runs. Callers
// may only read the store.
//
// The goroutine that fills the store also calls the handler: a slow handler delays the store, and
// its panic passes through the Controller's Run. A SharedInformer isolates its handlers.
//
// Source: tools/cache/controller.go NewInformerWithOptions
func NewInformerWithOptions(options InformerOptions) (store.Store, Controller) {
	if options.Handler == nil {
		options.Handler = ResourceEventHandlerFuncs{}
	}
	logger := klog.Background()
	if options.Logger != nil {
		logger = *options.Logger
	}
	indexer := newIndexer(options.Indexers, options.StoreMetrics)
	deltas := &deltaProcessor{
		lost:  func() {},
		store: indexer,
		keyOf: store.DeletionHandlingMetaNamespaceKeyFunc,
		emit: func(changes []change) {
			for i := range changes {
				changes[i].deliver(options.Handler)
			}
		},
	}
	reached := func(resourceVersion string, _ time.Time) {
		if resourceVersion != "" {
			indexer.Bookmark(resourceVersion)
		}
	}
	inner, queue := options.newQueue(logger, options.ObjectType, indexer, reached)
	options.Reflector.Progress = received(inner, options.Reflector.Progress)
	deltas.stored = inner.Stored
	c := newController(Config{
		Queue:            queue,
		ListerWatcher:    options.ListerWatcher,
		ObjectType:       options.ObjectType,
		FullResyncPeriod: options.ResyncPeriod,
		Process:          deltas.process,
		ProcessBatch:     deltas.processBatch,
		Transform:        options.Transform,
		Reflector:        options.Reflector,
		Prepare:          options.Prepare,
	})
	c.repairs = true
	return indexer, c
}
