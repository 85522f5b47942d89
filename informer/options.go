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
	// NewQueue, if set, makes the queue instead, and the two fields above are not used: with its logger, in front of known,
	// which is the informer's store.
	NewQueue func(logger klog.Logger, known store.Store) Queue
	// WrapQueue, if set, puts something around the queue, to trace it say. What wraps a RealFIFO should be a
	// deltafifo.QueueWithBatch too.
	WrapQueue func(deltafifo.Queue) deltafifo.Queue
}

// Queue is what both queues of package deltafifo can do, and what wraps them need not.
type Queue interface {
	deltafifo.Queue
	// Processed closes when what is queued now has been processed.
	Processed() <-chan struct{}
}

// newQueue makes the queue in front of known, and what is around it. It has no transform: the reflector transforms, once.
func (o QueueOptions) newQueue(logger klog.Logger, exampleObject any, known store.Store) (Queue, deltafifo.Queue) {
	var queue Queue
	switch {
	case o.NewQueue != nil:
		queue = o.NewQueue(logger, known)
	case o.InOrder:
		queue = deltafifo.NewRealFIFO(deltafifo.RealFIFOOptions{
			Logger:                &logger,
			Name:                  fmt.Sprintf("RealFIFO %T", exampleObject),
			AtomicEvents:          true,
			UnlockWhileProcessing: true,
			EmitDeltaTypeBookmark: true,
			Metrics:               o.Metrics,
		})
	default:
		queue = deltafifo.NewDeltaFIFO(deltafifo.DeltaFIFOOptions{
			Logger:                &logger,
			Name:                  fmt.Sprintf("DeltaFIFO %T", exampleObject),
			KnownObjects:          known,
			EmitDeltaTypeReplaced: true,
			Metrics:               o.Metrics,
		})
	}
	if o.WrapQueue != nil {
		return queue, o.WrapQueue(queue)
	}
	return queue, queue
}

func (o *SharedIndexInformerOptions) newIndexer() store.Indexer {
	indexer := newIndexer(o.Indexers, o.StoreResourceVersion, o.StoreOptions)
	if o.WrapIndexer != nil {
		indexer = o.WrapIndexer(indexer)
	}
	return indexer
}

func newIndexer(indexers store.Indexers, resourceVersion store.GaugeMetric, options []store.Option) store.Indexer {
	if resourceVersion != nil {
		options = append(slices.Clip(options), store.WithStoreMetrics(resourceVersion))
	}
	return store.NewIndexer(store.DeletionHandlingMetaNamespaceKeyFunc, indexers, options...)
}
