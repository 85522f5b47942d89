// SPDX-License-Identifier: Apache-2.0

// Package informer keeps a local copy of a collection on a server, and notifies handlers of its
// changes.
//
//	reflector -> deltafifo -> [informer] -> store
//	                                     -> handlers -> workqueue
//
// To use it, make an [Informer] with [New] and a client, add handlers, call Run, and wait with
// [WaitForSync]. Read objects with its Lister. Objects are shared: copy an object before you change
// it. In a controller, let the handler enqueue keys only; see the example of New.
//
// To read it, start with shared.go (the contract of an informer), then sharedinformer.go,
// controller.go (the loop), process.go (from delta to store to change), processor.go, changelog.go
// (the list that all handlers read), listener.go. Then run go test -v ./informer.
// Goroutines: an informer's Run is one, its reflector another, a third waits for the first list;
// each handler has one. Run starts them, and returns when they have ended.
// Locking: the informer's mu guards its lifecycle, the processor's mu the store with the change
// log; they are locked in this order. No handler runs under either. Index functions and wrappers of
// the store run under the processor's mu, and must not call the informer, except for its Status,
// Health and HasSynced, which take neither.
//
// Source: tools/cache/shared_informer.go SharedInformer, tools/cache/controller.go Controller
package informer

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/reflector"
	"example.com/informerstack/reflector/outage"
	"example.com/informerstack/store"
	"example.com/informerstack/wire"
)

// Informer is a SharedIndexInformer whose objects are all of type T, with methods that need no type
// assertions. It can be used wherever a SharedIndexInformer can.
//
// Source: tools/cache/shared_informer.go TypedSharedIndexInformer
type Informer[T Object] struct {
	SharedIndexInformer
	resource schema.GroupResource
}

// New returns an informer of resource, such as "pods". client is a client of the resource's group
// and version, for example clientset.CoreV1().RESTClient(). T is a pointer to the type of the
// objects: a Go type such as *corev1.Pod, *unstructured.Unstructured, or
// *metav1.PartialObjectMetadata, for which the server sends metadata only. If a Go type has another
// name than the kind, set Options.Kind. The store has an index by namespace, for the lister.
//
// The informer lists and watches with a wire.ListWatch, which requests protobuf if T has it, and
// never holds a whole list of objects in memory beside the store. After an outage of the server,
// the informers of one client share the knowledge that it answers again (see package outage),
// unless Reflector.Outage is set: with a Group of its own, an informer waits on its own.
func New[T interface {
	Object
	runtime.Object
}](client rest.Interface, resource string, options Options) *Informer[T] {
	newObject := func() runtime.Object {
		return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(runtime.Object)
	}
	labels, fields := options.LabelSelector, options.FieldSelector
	selecting := func(o *metav1.ListOptions) { o.LabelSelector, o.FieldSelector = labels, fields }
	lw := wire.NewListWatch(client, resource, options.Namespace, newObject,
		wire.Options{Kind: options.Kind, ListKind: options.ListKind, Modify: selecting})
	options.Namespace, options.LabelSelector, options.FieldSelector = "", "", ""
	options.Kind, options.ListKind = schema.GroupVersionKind{}, ""
	options.Reflector.Outage = cmp.Or(options.Reflector.Outage, outage.Of(client))
	indexers := store.Indexers{store.NamespaceIndex: store.MetaNamespaceIndexFunc}
	maps.Copy(indexers, options.Indexers)
	options.Indexers = indexers
	group := client.APIVersion().Group
	return NewTyped[T](NewSharedIndexInformer(lw, newObject(), options),
		schema.GroupResource{Group: group, Resource: resource})
}

// NewTyped returns an informer with typed methods, for example one of a Factory. All objects of
// informer must be of type T. The lister's NotFound errors name resource.
//
// Source: tools/cache/shared_informer.go NewTypedSharedIndexInformer
func NewTyped[T Object](
	informer SharedIndexInformer, resource schema.GroupResource,
) *Informer[T] {
	return &Informer[T]{informer, resource}
}

// AddTypedEventHandler is AddEventHandlerWithOptions for a typed handler.
func (i *Informer[T]) AddTypedEventHandler(
	handler TypedResourceEventHandler[T], options HandlerOptions,
) (ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(Untyped(handler), options)
}

// Lister returns a lister, which reads the store.
func (i *Informer[T]) Lister() store.Lister[T] {
	return store.NewLister[T](i.GetIndexer(), i.resource)
}

// Indexer returns the store with typed methods. Callers may only read it, and add indexers.
func (i *Informer[T]) Indexer() store.TypedIndexer[T] {
	return store.NewTypedIndexer[T](i.GetIndexer())
}

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

	// ResyncPeriod is the default resync period of handlers, and the initial time between two
	// resync checks. With 0 no handler gets a resync.
	ResyncPeriod time.Duration
	// Indexers are the store's indexes.
	Indexers store.Indexers
	// Reflector has the options of listing and watching: Transform, WatchErrorHandler, page size,
	// backoff, metrics and so on. Its TypeDescription replaces the type of the objects in messages
	// and in the informer's name. The informer sets ResyncPeriod, ShouldResync and Progress.
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

	// WrapQueue, if set, wraps the queue, for example to trace it. The wrapper of a RealFIFO should
	// be a deltafifo.QueueWithBatch too.
	WrapQueue func(deltafifo.Queue) deltafifo.Queue
	// WrapIndexer, if set, wraps the store, for example to trace it.
	WrapIndexer func(store.Indexer) store.Indexer
	// NewQueue, if set, makes the queue when the informer starts; then InOrder and Metrics are not
	// used. known is the informer's store. The queue must call reached as described at
	// deltafifo.Options.Reached.
	NewQueue func(logger klog.Logger, known store.Store, reached ReachedFunc) VersionedQueue
	// NewReflector, if set, makes the reflector when the informer starts, for options that are not
	// known before. Otherwise reflector.New does.
	NewReflector func(
		reflector.ListerWatcher, any, reflector.Store, reflector.Options,
	) *reflector.Reflector
}

// ReachedFunc is called when every change up to resourceVersion, which was current at asOf, is in
// the store. resourceVersion is "" if the server has none; asOf is zero if it is not known yet.
type ReachedFunc = func(resourceVersion string, asOf time.Time)

// VersionedQueue is a queue that reports the resourceVersion that the store has reached. Both
// queues of package deltafifo implement it. A wrapper (see Options.WrapQueue) need not.
type VersionedQueue interface {
	deltafifo.Queue
	// Received notes that every change up to resourceVersion, which was current at asOf, is queued.
	Received(resourceVersion string, asOf time.Time)
	// Stored notes that the process function has stored all its deltas. The process function calls
	// it.
	Stored()
}

// newQueue returns the queue for the store known. It has no transformer: the reflector transforms
// each object once.
func (o Options) newQueue(
	logger klog.Logger, exampleObject any, known store.Store, reached ReachedFunc,
) VersionedQueue {
	if o.NewQueue != nil {
		return o.NewQueue(logger, known, reached)
	}
	queue := deltafifo.Options{Logger: &logger, Metrics: o.Metrics, Reached: reached}
	if o.InOrder {
		queue.Name = fmt.Sprintf("RealFIFO %T", exampleObject)
		queue.AtomicEvents = true
		queue.UnlockWhileProcessing = true
		queue.EmitDeltaTypeBookmark = true
		return deltafifo.NewRealFIFO(queue)
	}
	queue.Name = fmt.Sprintf("DeltaFIFO %T", exampleObject)
	queue.KnownObjects = known
	queue.EmitDeltaTypeReplaced = true
	return deltafifo.NewDeltaFIFO(queue)
}

// newIndexer returns the store. Its resourceVersion is that of the queue, not that of the objects:
// a DeltaFIFO delivers these out of order, and a transform may remove the resourceVersion.
func (o Options) newIndexer() store.Indexer {
	return store.New(store.DeletionHandlingMetaNamespaceKeyFunc, store.Options{
		Indexers:             o.Indexers,
		Metrics:              o.StoreMetrics,
		IgnoreObjectVersions: true,
	})
}
