// SPDX-License-Identifier: Apache-2.0

// Package namespaces is an informer of the objects in some namespaces, which may change while it
// runs: one store, one list of handlers, and one HasSynced for all of them.
//
//	reflector of namespace a --.
//	reflector of namespace b ---> deltafifo.Parts -> informer -> store, handlers
//
// Each namespace is listed and watched alone. So the program needs no permission for the whole
// cluster, a namespace that comes costs one LIST of its own, and one that is forbidden, slow or
// broken delays no other. The informer behind the queue is the usual one.
//
// To use it, make an [Informer] with [New], choose its namespaces, add handlers, call Run, and wait
// with informer.WaitForSync. Choose namespaces in Options.Namespaces, with Add, Remove and Replace
// of [Set], or with Select, which follows Namespace objects by their labels.
//
// Read set.go (which namespaces there are), member.go (one namespace), root.go (the informer behind
// them), and sharedinformer.go (what the whole promises); cluster.go, feed.go and branch.go are the
// watch of the whole cluster. Then run go test -v ./informer/namespaces. Goroutines: those of an
// informer, and for each namespace those of a reflector. Run returns when all have ended. Locking:
// changing serializes changes of the set, and may wait for the queue; no status takes it.
package namespaces

import (
	"cmp"
	"maps"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"example.com/informerstack/informer"
	"example.com/informerstack/reflector"
	"example.com/informerstack/reflector/outage"
	"example.com/informerstack/reflector/wire"
	"example.com/informerstack/store"
)

// Options configures an informer of namespaces.
type Options struct {
	// Options are those of an informer. Namespace, InOrder, NewQueue and WrapQueue are not
	// supported: the queue is a deltafifo.Parts. WrapListerWatcher and NewReflector are called each
	// time that a namespace is listed anew from nothing. The options of Reflector are those of each
	// namespace: Transform may run for several at once, Name gets the namespace added, and
	// Metrics.LastResourceVersion is not called. No option may call the Set.
	informer.Options

	// Namespaces are the first ones.
	Namespaces []string
	// Tolerate, if set, says whether the informer is ready without a namespace that holds nothing,
	// because its requests fail with err. Such a namespace is left out: HasSynced, Health and
	// WaitForResourceVersion do not count it, until a LIST of it succeeds. If err is a 403 to a
	// LIST of a namespace that holds objects, these are deleted, with tombstones. After any other
	// error they stay, and Health reports their age.
	//
	// nil tolerates nothing: a namespace that fails keeps its objects, and Health reports their
	// age. Tolerate must return quickly, and not call the informer.
	Tolerate func(namespace string, err error) bool
	// ClusterAbove is a number of namespaces. When more have a watch of their own, one watch of the
	// whole cluster takes their place, if the server grants it. Namespaces that come later have a
	// watch of their own until there are more than ClusterAbove again. If the right is taken away,
	// the watch fails for half a minute, or at most half as many namespaces are left, each has a
	// watch of its own again. Objects stay, and nothing is listed for it: see Set.ClusterStatus.
	//
	// The changes of all other namespaces are received, decoded and dropped. 0 means never.
	ClusterAbove int
}

// Forbidden is a function for Options.Tolerate: the informer is ready without the namespaces that
// the program may not read.
func Forbidden(_ string, err error) bool { return apierrors.IsForbidden(err) }

// Informer is an informer.Informer of the objects in the namespaces of a Set.
type Informer[T informer.Object] struct {
	*informer.Informer[T]
	*Set
}

// New returns an informer of resource, such as "pods", in the namespaces that it is given: see
// informer.New. All namespaces share one Budget to read ahead, and one outage.Group.
func New[T interface {
	informer.Object
	runtime.Object
}](client rest.Interface, resource string, options Options) *Informer[T] {
	newObject := func() runtime.Object {
		return reflect.New(reflect.TypeFor[T]().Elem()).Interface().(runtime.Object)
	}
	labels, fields := options.LabelSelector, options.FieldSelector
	wireOptions := wire.Options{
		Kind: options.Kind, ListKind: options.ListKind, ReadAhead: options.ReadAhead,
		Modify: func(o *metav1.ListOptions) { o.LabelSelector, o.FieldSelector = labels, fields },
	}
	options.LabelSelector, options.FieldSelector = "", ""
	options.Kind, options.ListKind, options.ReadAhead = schema.GroupVersionKind{}, "", nil
	options.Reflector.Outage = cmp.Or(options.Reflector.Outage, outage.Of(client))
	shared, set := NewSharedIndexInformer(func(namespace string) reflector.ListerWatcher {
		return wire.NewListWatch(client, resource, namespace, newObject, wireOptions)
	}, newObject(), options)
	gr := client.APIVersion().WithResource(resource).GroupResource()
	return &Informer[T]{informer.NewTyped[T](shared, gr), set}
}

// NewSharedIndexInformer returns an informer of the objects in the namespaces of a Set. lw returns
// what lists and watches one namespace; with ClusterAbove, "" is the whole cluster. exampleObject
// is an example of the objects. The store has an index by namespace.
func NewSharedIndexInformer(
	lw func(namespace string) reflector.ListerWatcher, exampleObject runtime.Object,
	options Options,
) (informer.SharedIndexInformer, *Set) {
	if options.Namespace != "" || options.InOrder ||
		options.NewQueue != nil || options.WrapQueue != nil {
		panic("namespaces: Namespace, InOrder, NewQueue and WrapQueue are not supported")
	}
	set := newSet(lw, options)
	inner := options.Options
	inner.Indexers = store.Indexers{store.NamespaceIndex: store.MetaNamespaceIndexFunc}
	maps.Copy(inner.Indexers, options.Indexers)
	inner.NewQueue = set.newQueue
	inner.WrapListerWatcher = set.newRoot
	inner.NewReflector = set.start
	shared := informer.NewSharedIndexInformer(root{set}, exampleObject, inner)
	return &sharedInformer{shared, set}, set
}
