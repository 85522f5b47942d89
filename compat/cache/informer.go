// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"example.com/informerstack/informer"
	"example.com/informerstack/reflector"
)

// InformerOptions configures an informer with a single handler. ListerWatcher is required.
//
// Source: tools/cache/controller.go InformerOptions
type InformerOptions struct {
	// Logger is used for what concerns the queue; nil means klog.Background().
	Logger *klog.Logger
	// ListerWatcher is where the objects come from.
	ListerWatcher ListerWatcher
	// ObjectType is an example of the objects: others are not accepted. nil accepts any.
	ObjectType runtime.Object
	// Handler is told what changes.
	Handler ResourceEventHandler
	// ResyncPeriod is how often the store is replayed to Handler; 0 is never.
	ResyncPeriod time.Duration
	// MinWatchTimeout is the least time after which the server is asked to end a watch; five minutes at least.
	MinWatchTimeout time.Duration
	// Indexers are the store's indexes: the store is then an Indexer.
	Indexers Indexers
	// Transform changes each received object before it is kept.
	Transform TransformFunc
	// Identifier names the informer in metrics. There are none unless it is reserved.
	Identifier InformerNameAndResource
	// InformerMetricsProvider makes the metrics; nil means the one of SetInformerMetricsProvider.
	InformerMetricsProvider InformerMetricsProvider
}

// NewInformerWithOptions returns a store, which is for reading, and the Controller that fills it. The handler is called by
// the goroutine that fills it.
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
		Queue: newQueue(logger, options.ObjectType, indexer, nil,
			options.Identifier, options.InformerMetricsProvider),
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
func NewInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler) (Store, Controller) {
	return NewTransformingInformer(lw, objType, resyncPeriod, h, nil)
}

// NewIndexerInformer is NewInformerWithOptions with indexes.
//
// Deprecated: use NewInformerWithOptions.
//
// Source: tools/cache/controller.go NewIndexerInformer
func NewIndexerInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler, indexers Indexers) (Indexer, Controller) {
	return NewTransformingIndexerInformer(lw, objType, resyncPeriod, h, indexers, nil)
}

// NewTransformingInformer is NewInformerWithOptions with a transform.
//
// Deprecated: use NewInformerWithOptions.
//
// Source: tools/cache/controller.go NewTransformingInformer
func NewTransformingInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler, transformer TransformFunc) (Store, Controller) {
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
func NewTransformingIndexerInformer(lw ListerWatcher, objType runtime.Object, resyncPeriod time.Duration, h ResourceEventHandler, indexers Indexers, transformer TransformFunc) (Indexer, Controller) {
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
