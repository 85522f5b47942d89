// SPDX-License-Identifier: Apache-2.0

// Package adapt puts one piece of this module into a program that is otherwise built on client-go's own packages.
//
//	client-go, controller-runtime -> [adapt] -> informer, store, workqueue, leaderelection/resourcelock
//
// A name without a prefix makes client-go's type of ours; one that begins with Core makes ours of client-go's. The places:
//
//	controller-runtime's cache.Options.NewInformer           NewSharedIndexInformer, as it is
//	client-go's SharedInformerFactory.InformerFor            NewSharedIndexInformer, in a function
//	both, with an informer of which more than that is asked  SharedIndexInformer
//	client-go's and generated listers                        NewIndexer, Indexer
//	a library's handler, on an informer of compat/cache      CoreEventHandler
//	a handler for compat/cache, on an informer of client-go  EventHandler
//	controller-runtime's controller.Options.NewQueue         NewQueue, as it is
//	manager.Options.LeaderElectionResourceLockInterface      Lock
//
// What has client-go's shape already needs nothing and is not here: queues, rate limiters, stores without indexes, list
// and watch functions, event recorders. What an adapter passes on it converts: a tombstone that a handler is told of is
// client-go's, and one that a store is asked for may be.
//
// Read informer.go, handler.go, watcherror.go, indexer.go, queue.go, lock.go; the program in compat/example has all three
// pieces in a controller-runtime manager. Then go test -v ./compat/adapt. Goroutines: none of its own. Locking: none.
// It compiles under "informerstack swap" as well, where client-go's types are ours and nothing is left to convert.
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
	"example.com/informerstack/informer"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// NewSharedIndexInformer returns an informer of ours that does by default what client-go's does: its queue keeps the order of
// all changes, and it obeys the same feature gates and environment variables. CoreInformer tells what more it can do.
//
// Source: tools/cache/shared_informer.go NewSharedIndexInformer
func NewSharedIndexInformer(lw cache.ListerWatcher, exampleObject runtime.Object, defaultEventHandlerResyncPeriod time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	made := compat.NewSharedIndexInformer(lw, exampleObject, defaultEventHandlerResyncPeriod, CoreIndexers(indexers))
	return &sharedInformer{made.(cored).Core(), made.RunWithContext}
}

// SharedIndexInformer returns an informer of package informer, which may have any options, as client-go's. There is one
// informer and both may be used at once.
func SharedIndexInformer(core informer.SharedIndexInformer) cache.SharedIndexInformer {
	return &sharedInformer{core, core.Run}
}

// CoreInformer returns the informer of package informer that is inside of i, which knows its health and how far each handler
// is, and can wait for a resourceVersion. i is what one of the functions above returned, under whichever interface, or what
// embeds it, as the typed informers of client-go's factories do; else the answer is false.
func CoreInformer(i any) (informer.SharedIndexInformer, bool) {
	c, ok := i.(cored)
	if !ok {
		if outer, embeds := i.(interface{ GetController() cache.Controller }); embeds {
			c, ok = outer.GetController().(cored)
		}
	}
	if !ok {
		return nil, false
	}
	return c.Core(), true
}

// CoreListerWatcher returns what lists and watches as package reflector wants it. One that knows contexts is returned itself.
func CoreListerWatcher(lw cache.ListerWatcher) reflector.ListerWatcher {
	return compat.ToListerWatcherWithContext(lw)
}

// cored is what has an informer of the core inside.
type cored interface {
	Core() informer.SharedIndexInformer
}

// core is the informer that does the work. Its methods serve as they are, unless client-go has another signature.
type core = informer.SharedIndexInformer

// sharedInformer is an informer of ours with client-go's types.
type sharedInformer struct {
	core
	run func(ctx context.Context)
}

// Core implements cored.
func (s *sharedInformer) Core() informer.SharedIndexInformer { return s.core }

// Run implements cache.SharedInformer.
func (s *sharedInformer) Run(stopCh <-chan struct{}) { s.run(wait.ContextForChannel(stopCh)) }

// RunWithContext implements cache.SharedInformer.
func (s *sharedInformer) RunWithContext(ctx context.Context) { s.run(ctx) }

// HasSyncedChecker implements cache.SharedInformer.
func (s *sharedInformer) HasSyncedChecker() cache.DoneChecker { return s.core.HasSyncedChecker() }

// AddEventHandler implements cache.SharedInformer.
func (s *sharedInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return registered(s.core.AddEventHandler(CoreEventHandler(handler)))
}

// AddEventHandlerWithResyncPeriod implements cache.SharedInformer.
func (s *sharedInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, resyncPeriod time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return registered(s.core.AddEventHandlerWithResyncPeriod(CoreEventHandler(handler), resyncPeriod))
}

// AddEventHandlerWithOptions implements cache.SharedInformer.
func (s *sharedInformer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler, options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	return registered(s.core.AddEventHandlerWithOptions(CoreEventHandler(handler), informer.HandlerOptions{
		Logger:       options.Logger,
		ResyncPeriod: options.ResyncPeriod,
	}))
}

// RemoveEventHandler implements cache.SharedInformer.
func (s *sharedInformer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(registration)
	if !ok {
		return fmt.Errorf("invalid key type %T", handle)
	}
	return s.core.RemoveEventHandler(r.ResourceEventHandlerRegistration)
}

// SetTransform implements cache.SharedInformer.
func (s *sharedInformer) SetTransform(transform cache.TransformFunc) error {
	return s.core.SetTransform(store.TransformFunc(transform))
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
func (s *sharedInformer) GetController() cache.Controller {
	return controller{s.core.GetController(), s.core}
}

// controller is a Controller of ours with client-go's types, and knows its informer.
type controller struct {
	informer.Controller
	of informer.SharedIndexInformer
}

// Core implements cored.
func (c controller) Core() informer.SharedIndexInformer { return c.of }

// RunWithContext implements cache.Controller.
func (c controller) RunWithContext(ctx context.Context) { c.Controller.Run(ctx) }

// Run implements cache.Controller.
func (c controller) Run(stopCh <-chan struct{}) { c.Controller.Run(wait.ContextForChannel(stopCh)) }

// HasSyncedChecker implements cache.Controller.
func (c controller) HasSyncedChecker() cache.DoneChecker { return c.Controller.HasSyncedChecker() }
