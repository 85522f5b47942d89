// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientfeatures "k8s.io/client-go/features"

	"example.com/informerstack/informer"
	"example.com/informerstack/reflector"
)

// ProcessFunc consumes the items of a queue.
type ProcessFunc func(obj any, isInInitialList bool) error

// ShouldResyncFunc reports whether a resync is due.
type ShouldResyncFunc func() bool

// Config configures a Controller. Queue, ListerWatcher and Process are required.
//
// Source: tools/cache/controller.go Config
type Config struct {
	// Queue holds the changes between the reflector and Process.
	Queue
	// ListerWatcher lists and watches the collection.
	ListerWatcher

	// Process consumes the items of Queue, in one goroutine.
	Process ProcessFunc
	// ProcessBatch, if set and if Queue is a QueueWithBatch, consumes batches, unless the feature
	// gate InOrderInformersBatchProcess is off.
	ProcessBatch ProcessBatchFunc

	// ObjectType is an example of the objects. Objects of other types are rejected; nil accepts
	// any.
	ObjectType runtime.Object
	// ObjectDescription replaces the name of ObjectType in messages.
	ObjectDescription string

	// FullResyncPeriod is the time between two calls of ShouldResync; 0 means never.
	FullResyncPeriod time.Duration
	// MinWatchTimeout is the shortest timeout that a watch requests; at least five minutes.
	MinWatchTimeout time.Duration
	// ShouldResync decides whether Queue.Resync is called; nil means always.
	ShouldResync ShouldResyncFunc

	// WatchErrorHandler is called with each error of listing or watching.
	WatchErrorHandler WatchErrorHandler
	// WatchErrorHandlerWithContext is used if WatchErrorHandler is nil.
	WatchErrorHandlerWithContext WatchErrorHandlerWithContext

	// WatchListPageSize is the page size of each LIST; 0 leaves it to the reflector.
	WatchListPageSize int64
}

// Controller moves changes from a ListerWatcher through a Queue to a process function.
//
// Source: tools/cache/controller.go Controller
type Controller interface {
	// RunWithContext lists, watches and processes until ctx is done. It runs once.
	RunWithContext(ctx context.Context)
	// Run is RunWithContext until stopCh is closed.
	Run(stopCh <-chan struct{})
	// HasSynced is the queue's HasSynced: true once the first list was processed.
	HasSynced() bool
	// HasSyncedChecker returns HasSynced as a channel.
	HasSyncedChecker() DoneChecker
	// LastSyncResourceVersion is the reflector's; "" before the first list.
	LastSyncResourceVersion() string
}

// New returns a Controller that does not run yet.
//
// Source: tools/cache/controller.go New
func New(c *Config) Controller {
	handler := c.WatchErrorHandler.withContext()
	if handler == nil {
		handler = c.WatchErrorHandlerWithContext
	}
	return newController(*c, reflector.Options{
		TypeDescription:   c.ObjectDescription,
		ResyncPeriod:      c.FullResyncPeriod,
		ShouldResync:      c.ShouldResync,
		WatchErrorHandler: coreHandler(handler),
		WatchListPageSize: c.WatchListPageSize,
		MinWatchTimeout:   c.MinWatchTimeout,
	})
}

// controller is a Controller of the core. It makes its reflector when it runs.
type controller struct {
	config     Config
	options    reflector.Options
	relistLost bool // the store lacks the changes that Process fails on

	mu        sync.Mutex
	reflector *reflector.Reflector // nil before the run
}

func newController(config Config, options reflector.Options) *controller {
	return &controller{config: config, options: options}
}

// RunWithContext implements Controller.
func (c *controller) RunWithContext(ctx context.Context) {
	loop := c.start()
	if loop == nil {
		utilruntime.HandleErrorWithContext(ctx, nil,
			"The controller has been started already; it runs once")
		return
	}
	loop.Run(ctx)
}

// start makes the loop. It returns nil if the controller was started before.
func (c *controller) start() *informer.Controller {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reflector != nil {
		return nil
	}
	lw := ToListerWatcherWithContext(c.config.ListerWatcher)
	c.reflector = newReflector(lw, c.config.ObjectType, c.config.Queue, c.options, nil)
	loop := &informer.Controller{
		Reflector:  c.reflector,
		Queue:      c.config.Queue,
		Process:    PopProcessFunc(c.config.Process),
		RelistLost: c.relistLost,
	}
	if enabled(clientfeatures.InOrderInformersBatchProcess) {
		loop.ProcessBatch = c.config.ProcessBatch
	}
	return loop
}

// Run implements Controller.
func (c *controller) Run(stopCh <-chan struct{}) {
	c.RunWithContext(wait.ContextForChannel(stopCh))
}

// HasSynced implements Controller.
func (c *controller) HasSynced() bool { return c.config.Queue.HasSynced() }

// HasSyncedChecker implements Controller.
func (c *controller) HasSyncedChecker() DoneChecker { return c.config.Queue.HasSyncedChecker() }

// LastSyncResourceVersion implements Controller.
func (c *controller) LastSyncResourceVersion() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reflector == nil {
		return ""
	}
	return c.reflector.LastSyncResourceVersion()
}
