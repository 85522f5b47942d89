// SPDX-License-Identifier: Apache-2.0

// Package adapt puts one piece of this module into a program that otherwise uses client-go's own
// packages.
//
//	client-go, controller-runtime -> [adapt] -> informer, store, workqueue, leaderelection
//
// A name without a prefix converts our type to client-go's. A name that begins with Core converts
// client-go's type to ours. Use:
//
//	controller-runtime's cache.Options.NewInformer          NewSharedIndexInformer, as it is
//	client-go's SharedInformerFactory.InformerFor           NewSharedIndexInformer, in a function
//	both, with options that client-go does not have, such   NewSharedIndexInformerWithOptions
//	as those of Shards.Options (package shard)
//	an informer of package informer that exists already     SharedIndexInformer
//	client-go's and generated listers                       NewIndexer, Indexer
//	a library's handler, on an informer of compat/cache     CoreEventHandler
//	a handler for compat/cache, on an informer of client-go EventHandler
//	controller-runtime's controller.Options.NewQueue        NewQueue, as it is
//	manager.Options.LeaderElectionResourceLockInterface     Lock
//	a reconciler, for the page of compat/devtools           ShowErrors
//
// Types that have client-go's method sets need no adapter: queues, rate limiters, stores without
// indexes, list and watch functions, event recorders. An adapter converts the values that it passes
// on: handlers get client-go's tombstones, and a store accepts them.
//
// Read informer.go, handler.go, watcherror.go, indexer.go, queue.go, fair.go, priority.go, lock.go;
// the program in compat/example has all three pieces in a controller-runtime manager. Then go test
// -v ./compat/adapt. Goroutines: none. Locking: none. The package also compiles under
// "informerstack swap": there client-go's types are ours, and no conversion is needed.
//
// Source: tools/cache/shared_informer.go SharedIndexInformer, tools/cache/index.go Indexer,
// tools/leaderelection/resourcelock/interface.go Interface
package adapt

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	compat "example.com/informerstack/compat/cache"
	"example.com/informerstack/compat/internal/setters"
	"example.com/informerstack/informer"
	"example.com/informerstack/reflector"
)

// NewSharedIndexInformer returns an informer of ours that behaves by default as client-go's does:
// its queue keeps the order of all changes, and it obeys the same feature gates and environment
// variables. CoreInformer returns the informer inside, which can do more.
//
// Source: tools/cache/shared_informer.go NewSharedIndexInformer
func NewSharedIndexInformer(
	lw cache.ListerWatcher, exampleObject runtime.Object,
	defaultEventHandlerResyncPeriod time.Duration, indexers cache.Indexers,
) cache.SharedIndexInformer {
	made := compat.NewSharedIndexInformer(
		lw, exampleObject, defaultEventHandlerResyncPeriod, CoreIndexers(indexers))
	inside := made.(insideInformer)
	return &sharedInformer{inside.Core(), made.RunWithContext, inside.Setters()}
}

// NewSharedIndexInformerWithOptions returns an informer of package informer with client-go's types.
// A transform or a watch error handler that is set before the start replaces that of the options.
func NewSharedIndexInformerWithOptions(
	lw cache.ListerWatcher, exampleObject runtime.Object, options informer.Options,
) cache.SharedIndexInformer {
	set := new(setters.Setters)
	newReflector := options.NewReflector
	if newReflector == nil {
		newReflector = reflector.New
	}
	options.NewReflector = func(
		lw reflector.ListerWatcher, expectedType any, queue reflector.Store, o reflector.Options,
	) *reflector.Reflector {
		return newReflector(lw, expectedType, queue, set.Start(o))
	}
	if options.Form != nil {
		options.Reflector.Transform = set.Transform(options.Reflector.Transform)
	}
	core := informer.NewSharedIndexInformer(CoreListerWatcher(lw), exampleObject, options)
	return &sharedInformer{core, core.Run, set}
}

// SharedIndexInformer returns a finished informer of package informer with client-go's types. Both
// are one informer, and may be used at once. Its transform and its watch error handler are options
// of the informer: setting one, except to nil, is an error.
func SharedIndexInformer(core informer.SharedIndexInformer) cache.SharedIndexInformer {
	return &sharedInformer{core, core.Run, nil}
}

// CoreInformer returns the informer of package informer inside of i, which reports its health and
// the backlog of each handler, and can wait for a resourceVersion. i is a result of the functions
// above, or an informer that embeds one, as the typed informers of client-go's factories do.
// Otherwise CoreInformer returns false.
func CoreInformer(i any) (informer.SharedIndexInformer, bool) {
	holder, ok := i.(coreHolder)
	if embedding, embeds := i.(controllerHolder); !ok && embeds {
		holder, ok = embedding.GetController().(coreHolder)
	}
	if !ok {
		return nil, false
	}
	return holder.Core(), true
}

// CoreListerWatcher returns lw for package reflector: lw itself, if its methods take contexts.
func CoreListerWatcher(lw cache.ListerWatcher) reflector.ListerWatcher {
	return compat.ToListerWatcherWithContext(lw)
}

// insideInformer is an informer of compat/cache, seen from inside this module.
type insideInformer interface {
	coreHolder
	Setters() *setters.Setters
}

// coreHolder is an informer, or the controller of one, with an informer of the core inside.
type coreHolder interface {
	Core() informer.SharedIndexInformer
}

// controllerHolder is an informer. A typed informer that hides Core still has its controller.
type controllerHolder interface {
	GetController() cache.Controller
}

// core is the informer inside. Its methods are used as they are, unless client-go has another
// signature.
type core = informer.SharedIndexInformer

// sharedInformer is an informer of ours with client-go's types.
type sharedInformer struct {
	core
	run     func(ctx context.Context)
	setters *setters.Setters // nil: the core informer was finished before
}

// Core implements coreHolder.
func (s *sharedInformer) Core() informer.SharedIndexInformer { return s.core }

// Run implements cache.SharedInformer.
func (s *sharedInformer) Run(stopCh <-chan struct{}) { s.run(wait.ContextForChannel(stopCh)) }

// RunWithContext implements cache.SharedInformer.
func (s *sharedInformer) RunWithContext(ctx context.Context) { s.run(ctx) }

// HasSyncedChecker implements cache.SharedInformer.
func (s *sharedInformer) HasSyncedChecker() cache.DoneChecker { return s.core.HasSyncedChecker() }

// AddEventHandler implements cache.SharedInformer.
func (s *sharedInformer) AddEventHandler(
	handler cache.ResourceEventHandler,
) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer.
func (s *sharedInformer) AddEventHandlerWithResyncPeriod(
	handler cache.ResourceEventHandler, resyncPeriod time.Duration,
) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandlerWithOptions(handler, cache.HandlerOptions{ResyncPeriod: &resyncPeriod})
}

// AddEventHandlerWithOptions implements cache.SharedInformer.
func (s *sharedInformer) AddEventHandlerWithOptions(
	handler cache.ResourceEventHandler, options cache.HandlerOptions,
) (cache.ResourceEventHandlerRegistration, error) {
	added, err := s.core.AddEventHandlerWithOptions(CoreEventHandler(handler),
		informer.HandlerOptions{Logger: options.Logger, ResyncPeriod: options.ResyncPeriod})
	if err != nil {
		return nil, err
	}
	return registration{added}, nil
}

// RemoveEventHandler implements cache.SharedInformer.
func (s *sharedInformer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(registration)
	if !ok {
		return fmt.Errorf("invalid key type %T", handle)
	}
	return s.core.RemoveEventHandler(r.ResourceEventHandlerRegistration)
}

// GetStore implements cache.SharedInformer.
func (s *sharedInformer) GetStore() cache.Store { return s.GetIndexer() }

// GetIndexer implements cache.SharedIndexInformer.
func (s *sharedInformer) GetIndexer() cache.Indexer { return Indexer(s.core.GetIndexer()) }

// AddIndexers implements cache.SharedIndexInformer.
func (s *sharedInformer) AddIndexers(indexers cache.Indexers) error {
	return s.core.AddIndexers(CoreIndexers(indexers))
}

// GetController implements cache.SharedInformer.
func (s *sharedInformer) GetController() cache.Controller { return controller{s} }

// controller is the Controller of an informer. It reports the informer's state; the informer's own
// Run runs it.
type controller struct{ *sharedInformer }

// RunWithContext is a no-op.
func (controller) RunWithContext(context.Context) {}

// Run is a no-op.
func (controller) Run(<-chan struct{}) {}
