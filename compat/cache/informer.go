// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/informer"
	"example.com/informerstack/reflector"
)

// InformerOptions configures an informer with a single handler. ListerWatcher is required.
//
// Source: tools/cache/controller.go InformerOptions
type InformerOptions struct {
	// Logger is the queue's logger; nil means klog.Background().
	Logger *klog.Logger
	// ListerWatcher lists and watches the collection.
	ListerWatcher ListerWatcher
	// ObjectType is an example of the objects. Objects of other types are rejected; nil accepts
	// any.
	ObjectType runtime.Object
	// Handler is notified of changes. It may be nil.
	Handler ResourceEventHandler
	// ResyncPeriod is the time between two replays of the store to Handler; 0 means never.
	ResyncPeriod time.Duration
	// MinWatchTimeout is the shortest timeout that a watch requests; at least five minutes.
	MinWatchTimeout time.Duration
	// Indexers are the store's indexes: the store is then an Indexer.
	Indexers Indexers
	// Transform changes each received object once, before it is stored.
	Transform TransformFunc
	// Identifier names the informer in metrics. Without a reserved one there are no metrics.
	Identifier InformerNameAndResource
	// InformerMetricsProvider makes the metrics; nil means the one of SetInformerMetricsProvider.
	InformerMetricsProvider InformerMetricsProvider
}

// NewInformerWithOptions returns a store, and the Controller that fills it while it runs. Callers
// may only read the store.
//
// The goroutine that fills the store also calls the handler: a slow handler delays the store, and
// its panic passes through the Controller's Run. A SharedInformer isolates its handlers.
//
// Source: tools/cache/controller.go NewInformerWithOptions
func NewInformerWithOptions(options InformerOptions) (Store, Controller) {
	logger := klog.Background()
	if options.Logger != nil {
		logger = *options.Logger
	}
	if options.Handler == nil {
		options.Handler = ResourceEventHandlerFuncs{}
	}
	indexer := NewIndexer(DeletionHandlingMetaNamespaceKeyFunc, options.Indexers,
		WithStoreMetrics(options.Identifier, options.InformerMetricsProvider))
	process, processBatch := informer.ProcessDeltas(indexer, options.Handler)
	c := newController(Config{
		Queue: newQueue(deltafifo.Options{Logger: &logger, KnownObjects: indexer},
			options.ObjectType, options.Identifier, options.InformerMetricsProvider),
		ListerWatcher: options.ListerWatcher,
		ObjectType:    options.ObjectType,
		Process:       ProcessFunc(process),
		ProcessBatch:  processBatch,
	}, reflector.Options{
		ResyncPeriod:    options.ResyncPeriod,
		MinWatchTimeout: options.MinWatchTimeout,
		Transform:       options.Transform,
	})
	c.relistLost = true
	return indexer, c
}

// NewInformer is NewInformerWithOptions without options.
//
// Deprecated: use NewInformerWithOptions.
//
// Source: tools/cache/controller.go NewInformer
func NewInformer(
	lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler,
) (Store, Controller) {
	return NewTransformingInformer(lw, objType, resyncPeriod, h, nil)
}

// NewIndexerInformer is NewInformerWithOptions with indexes.
//
// Deprecated: use NewInformerWithOptions.
//
// Source: tools/cache/controller.go NewIndexerInformer
func NewIndexerInformer(
	lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler,
	indexers Indexers,
) (Indexer, Controller) {
	return NewTransformingIndexerInformer(lw, objType, resyncPeriod, h, indexers, nil)
}

// NewTransformingInformer is NewInformerWithOptions with a transform.
//
// Deprecated: use NewInformerWithOptions.
//
// Source: tools/cache/controller.go NewTransformingInformer
func NewTransformingInformer(
	lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler,
	transformer TransformFunc,
) (Store, Controller) {
	return NewInformerWithOptions(InformerOptions{
		ListerWatcher: lw,
		ObjectType:    objType,
		ResyncPeriod:  resyncPeriod,
		Handler:       h,
		Transform:     transformer,
	})
}

// NewTransformingIndexerInformer is NewInformerWithOptions with indexes and a transform.
//
// Deprecated: use NewInformerWithOptions.
//
// Source: tools/cache/controller.go NewTransformingIndexerInformer
func NewTransformingIndexerInformer(
	lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler,
	indexers Indexers, transformer TransformFunc,
) (Indexer, Controller) {
	s, controller := NewInformerWithOptions(InformerOptions{
		ListerWatcher: lw,
		ObjectType:    objType,
		ResyncPeriod:  resyncPeriod,
		Handler:       h,
		Indexers:      indexers,
		Transform:     transformer,
	})
	return s.(Indexer), controller
}
