// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// SharedIndexInformerOptions configures a shared informer. The zero value means a DeltaFIFO, no
// indexes and no resyncs.
//
// Source: tools/cache/shared_informer.go SharedIndexInformerOptions
type SharedIndexInformerOptions struct {
	// ResyncPeriod is the default resync period of handlers, and the initial time between two
	// resync checks. With 0 no handler gets a resync.
	ResyncPeriod time.Duration
	// Indexers are the store's indexes.
	Indexers store.Indexers
	// ObjectDescription replaces the example object's type in messages.
	ObjectDescription string

	// Transform changes each received object once, before it is stored. See
	// SharedInformer.SetTransform.
	Transform store.TransformFunc
	// WatchErrorHandler is called with each error of listing or watching. See
	// SharedInformer.SetWatchErrorHandler.
	WatchErrorHandler reflector.WatchErrorHandler
	// Reflector has the other options of the reflector: page size, backoff, metrics and so on.
	Reflector reflector.Options

	// QueueOptions choose and observe the queue.
	QueueOptions
	// StoreMetrics receives the store's numbers.
	StoreMetrics store.Metrics
	// WrapIndexer, if set, wraps the store, for example to trace it.
	WrapIndexer func(store.Indexer) store.Indexer
	// Prepare is Config.Prepare.
	Prepare func(*Config)
}

// QueueOptions choose the queue between reflector and store.
type QueueOptions struct {
	// InOrder selects a RealFIFO instead of a DeltaFIFO, as client-go's informers do today. It
	// keeps the order of the changes of all objects, and the informer stores them in batches. A
	// whole list is one change. The reflector can add changes while others are processed. A delete
	// is delivered even if the object was never stored.
	InOrder bool
	// Metrics receives the queue's numbers.
	Metrics deltafifo.Metrics
	// NewQueue, if set, makes the queue; then the two fields above are not used. known is the
	// informer's store. The queue must call reached as described at
	// deltafifo.Options.Reached.
	NewQueue func(logger klog.Logger, known store.Store, reached ReachedFunc) VersionedQueue
	// WrapQueue, if set, wraps the queue, for example to trace it. The wrapper of a RealFIFO should
	// be a deltafifo.QueueWithBatch too.
	WrapQueue func(deltafifo.Queue) deltafifo.Queue
}

// ReachedFunc is called when every change up to resourceVersion, which was current at asOf, is in
// the store. resourceVersion is "" if the server has none; asOf is zero if it is not known yet.
type ReachedFunc = func(resourceVersion string, asOf time.Time)

// VersionedQueue is a queue that reports the resourceVersion that the store has reached. Both
// queues of package deltafifo implement it. A wrapper (see WrapQueue) need not.
type VersionedQueue interface {
	deltafifo.Queue
	// Received notes that every change up to resourceVersion, which was current at asOf, is queued.
	Received(resourceVersion string, asOf time.Time)
	// Stored notes that the process function has stored all its deltas. The process function calls
	// it.
	Stored()
}

// newQueue returns the queue for the store known, and its wrapper. The queue has no transformer:
// the reflector transforms each object once.
func (o QueueOptions) newQueue(
	logger klog.Logger, exampleObject any, known store.Store, reached ReachedFunc,
) (VersionedQueue, deltafifo.Queue) {
	var queue VersionedQueue
	switch {
	case o.NewQueue != nil:
		queue = o.NewQueue(logger, known, reached)
	case o.InOrder:
		queue = deltafifo.NewRealFIFO(deltafifo.Options{
			Logger:                &logger,
			Name:                  fmt.Sprintf("RealFIFO %T", exampleObject),
			AtomicEvents:          true,
			UnlockWhileProcessing: true,
			EmitDeltaTypeBookmark: true,
			Metrics:               o.Metrics,
			Reached:               reached,
		})
	default:
		queue = deltafifo.NewDeltaFIFO(deltafifo.Options{
			Logger:                &logger,
			Name:                  fmt.Sprintf("DeltaFIFO %T", exampleObject),
			KnownObjects:          known,
			EmitDeltaTypeReplaced: true,
			Metrics:               o.Metrics,
			Reached:               reached,
		})
	}
	if o.WrapQueue != nil {
		return queue, o.WrapQueue(queue)
	}
	return queue, queue
}

// newIndexer returns the store of an informer. Its resourceVersion is that of the queue, not that
// of the objects: a DeltaFIFO delivers these out of order, and a transform may remove the
// resourceVersion.
func newIndexer(indexers store.Indexers, metrics store.Metrics) store.Indexer {
	return store.New(store.DeletionHandlingMetaNamespaceKeyFunc, store.Options{
		Indexers:             indexers,
		Metrics:              metrics,
		IgnoreObjectVersions: true,
	})
}
