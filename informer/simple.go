// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

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
		store: indexer,
		keyOf: store.DeletionHandlingMetaNamespaceKeyFunc,
		emit: func(changes []change) {
			for i := range changes {
				changes[i].deliver(options.Handler)
			}
		},
	}
	reached := func(resourceVersion string, _ time.Time) { indexer.Bookmark(resourceVersion) }
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
	deltas.lost = c.relist
	return indexer, c
}
