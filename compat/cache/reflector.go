// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"example.com/informerstack/internal/helpers/callsite"
	"example.com/informerstack/reflector"
)

// The types of package reflector that have client-go's shape.
type (
	// ReflectorStore is what a reflector keeps equal to a collection.
	ReflectorStore = reflector.Store
	// ReflectorBookmarkStore is a ReflectorStore that also takes bookmarks.
	ReflectorBookmarkStore = reflector.BookmarkStore
	// ResourceVersionUpdater is a ReflectorStore that also takes each resourceVersion.
	ResourceVersionUpdater = reflector.ResourceVersionUpdater
	// VeryShortWatchError is the end of a watch that lasted less than a second, without an event.
	VeryShortWatchError = reflector.VeryShortWatchError
)

// TransformingStore is a ReflectorStore that transforms what it is given. The objects that it gets
// are as the server sent them, each once.
//
// Source: tools/cache/reflector.go TransformingStore
type TransformingStore interface {
	ReflectorStore
	Transformer() TransformFunc
}

// WatchErrorHandler gets the error that ended a round of list and watch. It must return quickly.
//
// Source: tools/cache/reflector.go WatchErrorHandler
type WatchErrorHandler func(r *Reflector, err error)

// WatchErrorHandlerWithContext is a WatchErrorHandler that gets the context of the run.
//
// Source: tools/cache/reflector.go WatchErrorHandlerWithContext
type WatchErrorHandlerWithContext func(ctx context.Context, r *Reflector, err error)

// DefaultWatchErrorHandler logs err at the level it deserves.
//
// Source: tools/cache/reflector.go DefaultWatchErrorHandler
func DefaultWatchErrorHandler(ctx context.Context, r *Reflector, err error) {
	reflector.DefaultWatchErrorHandler(ctx, r.current(), err)
}

// Reflector is a reflector.Reflector. Some of its options can be set until it first runs.
//
// Source: tools/cache/reflector.go Reflector
type Reflector struct {
	// WatchListPageSize is the page size of each LIST; 0 leaves it to the reflector.
	WatchListPageSize int64
	// ShouldResync is asked before each Resync; nil means always.
	ShouldResync func() bool
	// MaxInternalErrorRetryDuration is how long a watch that ends in InternalError is opened again
	// at once; 0 is never.
	MaxInternalErrorRetryDuration time.Duration

	remake func(r *Reflector) *reflector.Reflector // nil: it has run, or an informer made it

	mu   sync.Mutex
	core *reflector.Reflector
}

// ReflectorOptions configures a Reflector.
//
// Source: tools/cache/reflector.go ReflectorOptions
type ReflectorOptions struct {
	// Logger is used instead of the one in the context.
	Logger *klog.Logger
	// Name is for logs; the default is the caller's file and line.
	Name string
	// TypeDescription is the type's name for people.
	TypeDescription string
	// ResyncPeriod is how often the store's Resync is called while watching; 0 is never.
	ResyncPeriod time.Duration
	// MinWatchTimeout is the shortest timeout that a watch requests; at least five minutes.
	MinWatchTimeout time.Duration
	// Clock is the source of time.
	Clock clock.Clock
	// Backoff makes the waits between failures.
	Backoff *wait.Backoff
}

// NewReflector returns a reflector named after its caller.
//
// Source: tools/cache/reflector.go NewReflector
func NewReflector(
	lw ListerWatcher, expectedType any, store ReflectorStore, resyncPeriod time.Duration,
) *Reflector {
	return NewReflectorWithOptions(
		lw, expectedType, store, ReflectorOptions{ResyncPeriod: resyncPeriod},
	)
}

// NewNamedReflector returns a reflector with a name.
//
// Source: tools/cache/reflector.go NewNamedReflector
func NewNamedReflector(
	name string, lw ListerWatcher, expectedType any, store ReflectorStore,
	resyncPeriod time.Duration,
) *Reflector {
	return NewReflectorWithOptions(
		lw, expectedType, store, ReflectorOptions{Name: name, ResyncPeriod: resyncPeriod},
	)
}

// NewNamespaceKeyedIndexerAndReflector returns a store with an index by namespace, and a reflector
// that fills it.
//
// Source: tools/cache/reflector.go NewNamespaceKeyedIndexerAndReflector
func NewNamespaceKeyedIndexerAndReflector(
	lw ListerWatcher, expectedType any, resyncPeriod time.Duration,
) (indexer Indexer, reflector *Reflector) {
	indexer = NewIndexer(MetaNamespaceKeyFunc, Indexers{NamespaceIndex: MetaNamespaceIndexFunc})
	return indexer, NewReflector(lw, expectedType, indexer, resyncPeriod)
}

// NewReflectorWithOptions returns a reflector that keeps store equal to what lw lists. It accepts
// objects of expectedType's type alone, any if that is nil.
//
// Source: tools/cache/reflector.go NewReflectorWithOptions
func NewReflectorWithOptions(
	lw ListerWatcher, expectedType any, store ReflectorStore, options ReflectorOptions,
) *Reflector {
	opts := reflector.Options{
		Logger:          options.Logger,
		Name:            cmp.Or(options.Name, callsite.Name()),
		TypeDescription: options.TypeDescription,
		ResyncPeriod:    options.ResyncPeriod,
		MinWatchTimeout: options.MinWatchTimeout,
		UseWatchList:    useWatchList(),
		Clock:           options.Clock,
		Backoff:         options.Backoff,
	}
	source := ToListerWatcherWithContext(lw)
	r := &Reflector{core: reflector.New(source, expectedType, store, opts)}
	r.remake = func(r *Reflector) *reflector.Reflector {
		opts.WatchListPageSize = r.WatchListPageSize
		opts.ShouldResync = r.ShouldResync
		opts.MaxInternalErrorRetryDuration = r.MaxInternalErrorRetryDuration
		opts.Metrics = reflectorMetrics(r.core.Name())
		opts.Outage = outageGroup()
		source := sourceOf(source, r.core.Name(), nil)
		return reflector.New(source, expectedType, store, opts)
	}
	return r
}

// current is the reflector of the core, one without name and state for the zero Reflector.
func (r *Reflector) current() *reflector.Reflector {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.core == nil {
		return &reflector.Reflector{}
	}
	return r.core
}

// start takes over what was set since the reflector was made.
func (r *Reflector) start() *reflector.Reflector {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.remake != nil {
		r.core = r.remake(r)
		r.remake = nil
	}
	return r.core
}

// Name returns the name used in logs.
func (r *Reflector) Name() string { return r.current().Name() }

// TypeDescription returns the name of the expected type, for people.
func (r *Reflector) TypeDescription() string { return r.current().TypeDescription() }

// LastSyncResourceVersion returns the resourceVersion of the last change that the store has.
func (r *Reflector) LastSyncResourceVersion() string {
	return r.current().LastSyncResourceVersion()
}

// Run is RunWithContext until stopCh is closed.
func (r *Reflector) Run(stopCh <-chan struct{}) { r.RunWithContext(wait.ContextForChannel(stopCh)) }

// RunWithContext lists and watches until ctx is done.
func (r *Reflector) RunWithContext(ctx context.Context) { r.start().Run(ctx) }

// ListAndWatch is ListAndWatchWithContext until stopCh is closed.
func (r *Reflector) ListAndWatch(stopCh <-chan struct{}) error {
	return r.ListAndWatchWithContext(wait.ContextForChannel(stopCh))
}

// ListAndWatchWithContext does one round of list and watch. That a resync failed ends the round,
// and is no error of it.
func (r *Reflector) ListAndWatchWithContext(ctx context.Context) error {
	err := r.start().ListAndWatch(ctx)
	var failed *reflector.ApplyError
	if errors.As(err, &failed) && failed.Verb == "resync" {
		return nil
	}
	return err
}

// coreHandler is handler for a reflector of the core, which it gets as one and the same Reflector;
// nil for nil.
func coreHandler(handler WatchErrorHandlerWithContext) reflector.WatchErrorHandler {
	if handler == nil {
		return nil
	}
	var mu sync.Mutex
	var r *Reflector
	of := func(core *reflector.Reflector) *Reflector {
		mu.Lock()
		defer mu.Unlock()
		if r == nil || r.core != core {
			r = &Reflector{core: core}
		}
		return r
	}
	return func(
		ctx context.Context, core *reflector.Reflector, err error,
	) {
		handler(ctx, of(core), err)
	}
}

// withContext is handler with a context that it ignores; nil for nil.
func (handler WatchErrorHandler) withContext() WatchErrorHandlerWithContext {
	if handler == nil {
		return nil
	}
	return func(_ context.Context, r *Reflector, err error) { handler(r, err) }
}
