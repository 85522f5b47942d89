// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"

	"example.com/informerstack/informer"
	"example.com/informerstack/reflector"
)

// ProcessFunc consumes what is popped from a queue.
type ProcessFunc func(obj any, isInInitialList bool) error

// ShouldResyncFunc says whether a resync is due.
type ShouldResyncFunc func() bool

// Config says what a Controller moves from where to where. Queue, ListerWatcher and Process are required.
//
// Source: tools/cache/controller.go Config
type Config struct {
	// Queue stands between the reflector and Process.
	Queue
	// ListerWatcher is where the objects come from.
	ListerWatcher

	// Process is given what is popped from Queue, by one goroutine.
	Process ProcessFunc
	// ProcessBatch, if set and if Queue is a QueueWithBatch, is given what is popped together, unless the feature gate
	// InOrderInformersBatchProcess is off.
	ProcessBatch ProcessBatchFunc

	// ObjectType is an example of the objects: others are not accepted. nil accepts any.
	ObjectType runtime.Object
	// ObjectDescription replaces the name of ObjectType in messages.
	ObjectDescription string

	// FullResyncPeriod is how often ShouldResync is asked; 0 is never.
	FullResyncPeriod time.Duration
	// MinWatchTimeout is the least time after which the server is asked to end a watch; five minutes at least.
	MinWatchTimeout time.Duration
	// ShouldResync says whether Queue.Resync is called; nil is always.
	ShouldResync ShouldResyncFunc

	// WatchErrorHandler is told why listing or watching failed.
	WatchErrorHandler WatchErrorHandler
	// WatchErrorHandlerWithContext is told if WatchErrorHandler is nil.
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
	// HasSynced is the queue's: true once the first list was processed.
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
	return controller{informer.NewController(&informer.Config{
		Queue:             c.Queue,
		ListerWatcher:     ToListerWatcherWithContext(c.ListerWatcher),
		Process:           PopProcessFunc(c.Process),
		ProcessBatch:      c.ProcessBatch,
		ObjectType:        c.ObjectType,
		ObjectDescription: c.ObjectDescription,
		FullResyncPeriod:  c.FullResyncPeriod,
		ShouldResync:      c.ShouldResync,
		WatchErrorHandler: coreHandler(handler),
		Reflector: reflector.Options{
			WatchListPageSize: c.WatchListPageSize,
			MinWatchTimeout:   c.MinWatchTimeout,
		},
		Prepare: prepare,
	})}
}

// controller is a Controller of the core under client-go's method names.
type controller struct{ core informer.Controller }

// RunWithContext implements Controller.
func (c controller) RunWithContext(ctx context.Context) { c.core.Run(ctx) }

// Run implements Controller.
func (c controller) Run(stopCh <-chan struct{}) { c.core.Run(wait.ContextForChannel(stopCh)) }

// HasSynced implements Controller.
func (c controller) HasSynced() bool { return c.core.HasSynced() }

// HasSyncedChecker implements Controller.
func (c controller) HasSyncedChecker() DoneChecker { return c.core.HasSyncedChecker() }

// LastSyncResourceVersion implements Controller.
func (c controller) LastSyncResourceVersion() string { return c.core.LastSyncResourceVersion() }
