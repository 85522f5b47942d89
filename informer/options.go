// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/internal/freshness"
	"example.com/informerstack/internal/helpers/objects"
	"example.com/informerstack/reflector"
	"example.com/informerstack/reflector/wire"
	"example.com/informerstack/store"
	"example.com/informerstack/store/compact"
)

// Options configures an informer. The zero value means all objects, a DeltaFIFO, no further indexes
// and no resyncs.
//
// Source: tools/cache/shared_informer.go SharedIndexInformerOptions
type Options struct {
	// Namespace, LabelSelector and FieldSelector select the objects of New; "" selects all. A
	// ListerWatcher has made its selection: NewSharedIndexInformer panics if one of them is set.
	Namespace, LabelSelector, FieldSelector string
	// Kind and ListKind say what a server sends to New, see wire.Options. Kind is needed if T is a
	// Go type with another name, ListKind for a custom resource that names its list in its own way.
	Kind     schema.GroupVersionKind
	ListKind string
	// ReadAhead bounds the bytes that New's watches read ahead of a slow Transform, store or queue.
	// nil is one Budget of 16 MiB for all informers of the same client and server. Informers may
	// share another one, or have one each. It does not bound a LIST, see wire.Limits.
	ReadAhead *wire.Budget

	// ResyncPeriod is the default resync period of handlers, and the initial time between two
	// resync checks. With 0 no handler gets a resync.
	ResyncPeriod time.Duration
	// Indexers are the store's indexes.
	Indexers store.Indexers
	// Form, if set, makes the store keep the objects in less memory: see package compact, and
	// NewProjected for forms that keep a part of each object. Objects pass Reflector.Transform
	// first. WrapQueue and WrapIndexer wrap a queue and a store of packed objects.
	Form compact.Form
	// Reflector has the options of listing and watching: Transform, WatchErrorHandler, page size,
	// backoff, metrics and so on. Its TypeDescription replaces the type of the objects in messages
	// and in the informer's name. The informer sets ResyncPeriod and ShouldResync.
	Reflector reflector.Options

	// InOrder selects a RealFIFO instead of a DeltaFIFO, as client-go's informers do today. It
	// keeps the order of the changes of all objects, and the informer stores them in batches. A
	// whole list is one change. The reflector can add changes while others are processed. A delete
	// is delivered even if the object was never stored.
	InOrder bool
	// Metrics receives the queue's numbers.
	Metrics deltafifo.Metrics
	// StoreMetrics receives the store's numbers.
	StoreMetrics store.Metrics

	// WrapListerWatcher, if set, wraps what the informer lists and watches with, for example to
	// trace it, or to change what it selects (see reflector.Reselector). It is called once,
	// when the informer starts, with the context of Run and the example object, which may be nil.
	WrapListerWatcher func(
		ctx context.Context, lw reflector.ListerWatcher, example runtime.Object,
	) reflector.ListerWatcher
	// WrapQueue, if set, wraps the queue, for example to trace it. The wrapper of a RealFIFO should
	// be a deltafifo.QueueWithBatch too. A wrapper passes each call, and each delta, on once,
	// before it returns. If it does not, the informer works, but it is not known which changes its
	// store holds: Health has no CurrentAsOf, and WaitForResourceVersion fails.
	WrapQueue func(deltafifo.Queue) deltafifo.Queue
	// WrapIndexer, if set, wraps the store, for example to trace it.
	WrapIndexer func(store.Indexer) store.Indexer
	// NewQueue, if set, makes the queue when the informer starts; then InOrder is not used. options
	// has the informer's store as KnownObjects. A queue that is not of package deltafifo should
	// call options.Progress; otherwise it is as with a wrapper that holds calls back.
	NewQueue func(options deltafifo.Options) deltafifo.Queue
	// NewReflector, if set, makes the reflector when the informer starts, for options that are not
	// known before. It passes the Store on as it is. Otherwise reflector.New does.
	NewReflector func(
		reflector.ListerWatcher, any, reflector.Store, reflector.Options,
	) *reflector.Reflector
}

// newQueue returns the queue. It has no transformer: the reflector transforms each object once.
func (o Options) newQueue(exampleObject any, queue deltafifo.Options) deltafifo.Queue {
	if o.NewQueue != nil {
		return o.NewQueue(queue)
	}
	if o.InOrder {
		queue.KnownObjects = nil
		queue.Name = fmt.Sprintf("RealFIFO %T", exampleObject)
		queue.AtomicEvents = true
		queue.UnlockWhileProcessing = true
		queue.EmitDeltaTypeBookmark = true
		return deltafifo.NewRealFIFO(queue)
	}
	queue.Name = fmt.Sprintf("DeltaFIFO %T", exampleObject)
	queue.EmitDeltaTypeReplaced = true
	return deltafifo.NewDeltaFIFO(queue)
}

// newTracker returns the Tracker of the store. It reports the version to the store's metric.
func (o Options) newTracker() (t *freshness.Tracker) {
	report := o.StoreMetrics.ResourceVersion
	if report == nil {
		return freshness.New(nil)
	}
	var mu sync.Mutex // so that the last report is that of the newest version
	t = freshness.New(func() {
		mu.Lock()
		defer mu.Unlock()
		resourceVersion := t.Held().ResourceVersion
		number, ok := objects.VersionNumber(resourceVersion)
		if ok || resourceVersion == "" {
			report(number)
		}
	})
	return t
}

// newIndexer returns the store. Its resourceVersion is not that of the objects: a DeltaFIFO
// delivers these out of order, and a transform may remove the resourceVersion.
func (o Options) newIndexer(resourceVersion func() (string, bool)) store.Indexer {
	return store.New(store.DeletionHandlingMetaNamespaceKeyFunc, store.Options{
		Indexers: o.Indexers, Metrics: o.StoreMetrics, ResourceVersion: resourceVersion,
	})
}
