// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// SharedIndexInformerOptions configures a shared informer. The zero value is an informer without indexes and resyncs, on a
// DeltaFIFO.
//
// Source: tools/cache/shared_informer.go SharedIndexInformerOptions
type SharedIndexInformerOptions struct {
	// ResyncPeriod is the resync period of handlers that ask for none of their own, and the first choice for how often the
	// informer checks whose resync is due. 0: no handler ever gets one.
	ResyncPeriod time.Duration
	// Indexers are the store's indexes.
	Indexers store.Indexers
	// ObjectDescription replaces the example object's type in messages.
	ObjectDescription string

	// Transform changes each received object once, before it is kept; see SharedInformer.SetTransform.
	Transform store.TransformFunc
	// WatchErrorHandler is told why listing or watching failed; see SharedInformer.SetWatchErrorHandler.
	WatchErrorHandler reflector.WatchErrorHandler
	// Reflector holds what else can be said about listing and watching: page size, backoff, metrics and so on.
	Reflector reflector.Options

	// QueueOptions choose and observe the queue.
	QueueOptions
	// StoreResourceVersion, if set, follows the resourceVersion that the store has reached.
	StoreResourceVersion store.GaugeMetric
	// StoreOptions are further options of the store.
	StoreOptions []store.Option
	// WrapIndexer, if set, puts something around the store, to trace it say.
	WrapIndexer func(store.Indexer) store.Indexer
	// Prepare is the Config's; see there.
	Prepare func(*Config)
}

// QueueOptions choose the queue between reflector and store.
type QueueOptions struct {
	// InOrder takes a RealFIFO instead of a DeltaFIFO: changes of all objects come in the order in which they happened, and
	// are stored in batches; a whole list is one change; the reflector goes on while they are processed. It is what
	// client-go's informers use today. A delete is then passed on even if the object was never seen.
	InOrder bool
	// Metrics receives the queue's numbers.
	Metrics deltafifo.Metrics
	// NewQueue, if set, makes the queue; the two fields above are not used then. known is the
	// informer's store. The queue must call reached as deltafifo.DeltaFIFOOptions.Reached is called.
	NewQueue func(logger klog.Logger, known store.Store, reached ReachedFunc) VersionedQueue
	// WrapQueue, if set, puts something around the queue, to trace it say. What wraps a RealFIFO should be a
	// deltafifo.QueueWithBatch too.
	WrapQueue func(deltafifo.Queue) deltafifo.Queue
}

// ReachedFunc is called when every change up to resourceVersion, which was current at asOf, is in
// the store. resourceVersion is "" if the server has none; asOf is zero if it is not known yet.
type ReachedFunc = func(resourceVersion string, asOf time.Time)

// VersionedQueue is a queue that reports which resourceVersion the store has reached. Both queues of
// package deltafifo are one. A wrapper (see WrapQueue) need not be one.
type VersionedQueue interface {
	deltafifo.Queue
	// Received notes that every change up to resourceVersion, which was current at asOf, is queued.
	Received(resourceVersion string, asOf time.Time)
	// Stored is called by the process function when everything it was called with is in the store.
	Stored()
}

// newQueue makes the queue in front of known, and its wrapper. The queue has no transformer: the
// reflector transforms each object once.
func (o QueueOptions) newQueue(
	logger klog.Logger, exampleObject any, known store.Store, reached ReachedFunc,
) (VersionedQueue, deltafifo.Queue) {
	var queue VersionedQueue
	switch {
	case o.NewQueue != nil:
		queue = o.NewQueue(logger, known, reached)
	case o.InOrder:
		queue = deltafifo.NewRealFIFO(deltafifo.RealFIFOOptions{
			Logger:                &logger,
			Name:                  fmt.Sprintf("RealFIFO %T", exampleObject),
			AtomicEvents:          true,
			UnlockWhileProcessing: true,
			EmitDeltaTypeBookmark: true,
			Metrics:               o.Metrics,
			Reached:               reached,
		})
	default:
		queue = deltafifo.NewDeltaFIFO(deltafifo.DeltaFIFOOptions{
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

// newIndexer makes an informer's store. The queue reports its resourceVersion, not the objects: a
// DeltaFIFO delivers them out of order, and a transform may remove it.
func newIndexer(
	indexers store.Indexers, resourceVersion store.GaugeMetric, options []store.Option,
) store.Indexer {
	options = append(slices.Clip(options), store.WithoutObjectVersions())
	if resourceVersion != nil {
		options = append(options, store.WithStoreMetrics(resourceVersion))
	}
	return store.NewIndexer(store.DeletionHandlingMetaNamespaceKeyFunc, indexers, options...)
}
