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
// To read it, start with sharedinformer.go (the contract of an informer, and its parts), then
// controller.go (the loop, and from delta to store to change), changelog.go (the list that all
// handlers read), processor.go (the handlers). Then run go test -v ./informer. Goroutines: Run is
// one, the reflector is another, a third waits for the first list, and each handler has one. Run
// starts them, and returns when they have ended. Locking: the informer's mu guards its lifecycle,
// the processor's mu guards the store and the change log; they are locked in this order. No handler
// runs under either. Index functions and wrappers of the store run under the processor's mu. They
// must not call the informer, except for its Status, Health and HasSynced, which take neither
// mutex.
//
// Source: tools/cache/shared_informer.go SharedInformer, tools/cache/controller.go Controller
package informer

import (
	"cmp"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"example.com/informerstack/reflector/outage"
	"example.com/informerstack/reflector/wire"
	"example.com/informerstack/store"
	"example.com/informerstack/store/compact"
)

// Informer is a SharedIndexInformer of objects of type T, with methods that need no type
// assertions. It can be used wherever a SharedIndexInformer can.
//
// Source: tools/cache/shared_informer.go TypedSharedIndexInformer
type Informer[T Object] struct {
	SharedIndexInformer
	resource  schema.GroupResource
	selection Collection // zero unless New has made it
}

// Collection names the objects that an informer copies.
type Collection struct {
	Resource                                schema.GroupVersionResource
	Namespace, LabelSelector, FieldSelector string // "" selects all
}

// String returns the resource with its namespace and selectors.
func (c Collection) String() string {
	text := c.Resource.GroupResource().String()
	for _, part := range [][2]string{
		{"namespace", c.Namespace}, {"labels", c.LabelSelector}, {"fields", c.FieldSelector},
	} {
		if part[1] != "" {
			text += " " + part[0] + "=" + part[1]
		}
	}
	return text
}

// New returns an informer of resource, such as "pods". client is a client of the resource's group
// and version, for example clientset.CoreV1().RESTClient(). T is a pointer to the type of the
// objects: a Go type such as *corev1.Pod, *unstructured.Unstructured, or
// *metav1.PartialObjectMetadata (then the server sends metadata only). If a Go type has another
// name than the kind, set Options.Kind. The store has an index by namespace, for the lister.
//
// The informer lists and watches with a wire.ListWatch, which requests protobuf if T has it, and
// never holds a whole list of objects in memory beside the store. After an outage of the server, it
// is usually current within seconds, because the informers of one client and server share an
// outage.Group, unless Reflector.Outage is set to another one.
func New[T interface {
	Object
	runtime.Object
}](client rest.Interface, resource string, options Options) *Informer[T] {
	if options.Form != nil && !options.Form.Whole() {
		panic("informer: Options.Form keeps a part of each object: use NewProjected")
	}
	return newSelected[T, T](client, resource, options)
}

// NewProjected is New for objects of type T, of which the store keeps, and handlers and readers
// get, an S: see the forms of package compact. It takes the place of Options.Form.
func NewProjected[T interface {
	Object
	runtime.Object
}, S Object](
	client rest.Interface, resource string, form compact.Projection[T, S], options Options,
) *Informer[S] {
	options.Form = form
	return newSelected[T, S](client, resource, options)
}

// newSelected returns an informer of objects of type T, of which handlers and readers get an S.
func newSelected[T runtime.Object, S Object](
	client rest.Interface, resource string, options Options,
) *Informer[S] {
	newObject := func() runtime.Object {
		return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(runtime.Object)
	}
	selection := Collection{Resource: client.APIVersion().WithResource(resource),
		Namespace: options.Namespace, LabelSelector: options.LabelSelector,
		FieldSelector: options.FieldSelector}
	labels, fields := options.LabelSelector, options.FieldSelector
	selecting := func(o *metav1.ListOptions) { o.LabelSelector, o.FieldSelector = labels, fields }
	lw := wire.NewListWatch(client, resource, options.Namespace, newObject,
		wire.Options{Kind: options.Kind, ListKind: options.ListKind, Modify: selecting,
			ReadAhead: options.ReadAhead})
	options.Namespace, options.LabelSelector, options.FieldSelector = "", "", ""
	options.Kind, options.ListKind, options.ReadAhead = schema.GroupVersionKind{}, "", nil
	options.Reflector.Outage = cmp.Or(options.Reflector.Outage, outage.Of(client))
	indexers := store.Indexers{store.NamespaceIndex: store.MetaNamespaceIndexFunc}
	maps.Copy(indexers, options.Indexers)
	options.Indexers = indexers
	typed := NewTyped[S](NewSharedIndexInformer(lw, newObject(), options),
		selection.Resource.GroupResource())
	typed.selection = selection
	return typed
}

// NewTyped returns an informer with typed methods, for example one of a factory. All objects of
// informer must be of type T. The lister's NotFound errors name resource.
//
// Source: tools/cache/shared_informer.go NewTypedSharedIndexInformer
func NewTyped[T Object](
	informer SharedIndexInformer, resource schema.GroupResource,
) *Informer[T] {
	return &Informer[T]{SharedIndexInformer: informer, resource: resource}
}

// Selection returns the resource, the namespace and the selectors of New. known is false for an
// informer of NewTyped: its ListerWatcher has selected the objects.
func (i *Informer[T]) Selection() (selection Collection, known bool) {
	return i.selection, i.selection != Collection{}
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
