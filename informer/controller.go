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

// restartProcessing is the pause after which processing goes on if it panicked and the process lives.
const restartProcessing = time.Second

// Config says what a Controller moves from where to where. Queue, ListerWatcher and Process are required.
//
// Source: tools/cache/controller.go Config
type Config struct {
	// Queue stands between the reflector and Process.
	Queue deltafifo.Queue
	// ListerWatcher is where the objects come from.
	ListerWatcher reflector.ListerWatcher
	// Process is given what is popped from Queue, by one goroutine. Its error is logged; what was popped is gone.
	Process deltafifo.PopProcessFunc
	// ProcessBatch, if set and if Queue is a deltafifo.QueueWithBatch, is given what is popped together.
	ProcessBatch deltafifo.ProcessBatchFunc

	// ObjectType is an example of the objects: others are not accepted. nil accepts any.
	ObjectType runtime.Object
	// ObjectDescription replaces the name of ObjectType in messages.
	ObjectDescription string

	// FullResyncPeriod is how often ShouldResync is asked; 0 is never.
	FullResyncPeriod time.Duration
	// ShouldResync says whether Queue.Resync is called; nil is always.
	ShouldResync func() bool

	// Transform changes each received object once, before it enters Queue.
	Transform store.TransformFunc
	// WatchErrorHandler is told why listing or watching failed; nil is reflector.DefaultWatchErrorHandler.
	WatchErrorHandler reflector.WatchErrorHandler

	// Reflector holds what else can be said about listing and watching. The fields above win where they are set.
	Reflector reflector.Options

	// Prepare, if set, is called when Run begins, and may change every field but Queue: for what is not known before.
	Prepare func(*Config)
}

// Controller moves changes from a ListerWatcher through a Queue to a process function. It is the engine of an informer.
//
// Source: tools/cache/controller.go Controller
type Controller interface {
	// Run lists, watches and processes until ctx is done. It returns after the call of the process function in flight, if
	// there is one, and the reflector have ended; what is still in the queue is not processed. A second Run is reported
	// as an error and returns.
	Run(ctx context.Context)
	// HasSynced is the queue's: true once the first list was processed.
	HasSynced() bool
	// HasSyncedChecker returns HasSynced as a channel.
	HasSyncedChecker() DoneChecker
	// LastSyncResourceVersion is the reflector's; "" before the first list.
	LastSyncResourceVersion() string
}

// NewController returns a Controller that does not run yet.
//
// Source: tools/cache/controller.go New
func NewController(config *Config) Controller { return newController(*config) }

// controller runs two goroutines: the reflector's fills the queue, Run's own empties it.
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
	// A panic of the process function passes through here. Nothing that waits for the reflector may be deferred: it would
	// wait for ever, and swallow the panic.
	defer utilruntime.HandleCrashWithContext(ctx)
	if c.started.Swap(true) {
		utilruntime.HandleErrorWithContext(ctx, nil, "The controller has been started already; it runs once")
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

// newReflector makes the reflector.
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

// status is the reflector's; the zero Status before Run.
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
	// Logger is used for what concerns the queue; nil means klog.Background().
	Logger *klog.Logger
	// ListerWatcher is where the objects come from.
	ListerWatcher reflector.ListerWatcher
	// ObjectType is an example of the objects: others are not accepted. nil accepts any.
	ObjectType runtime.Object
	// Handler is told what changes; nil tells nobody.
	Handler ResourceEventHandler
	// ResyncPeriod is how often the store is replayed to Handler; 0 is never.
	ResyncPeriod time.Duration
	// Indexers are the store's indexes: the store is then a store.Indexer.
	Indexers store.Indexers
	// Transform changes each received object once, before it is kept.
	Transform store.TransformFunc

	// Reflector holds what else can be said about listing and watching.
	Reflector reflector.Options
	// QueueOptions choose and observe the queue.
	QueueOptions
	// StoreResourceVersion, if set, follows the resourceVersion that the store has reached.
	StoreResourceVersion store.GaugeMetric
	// StoreOptions are further options of the store.
	StoreOptions []store.Option
	// Prepare is the Config's; see there.
	Prepare func(*Config)
}

// NewInformerWithOptions returns a store, and the Controller that fills it once it runs. The store is for reading.
//
// The handler is called by the goroutine that fills the store: a slow one holds up everything, and a panic of it passes
// through the Controller's Run. A SharedInformer isolates its handlers.
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
	indexer := newIndexer(options.Indexers, options.StoreResourceVersion, options.StoreOptions)
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
