// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"example.com/informerstack/reflector"
)

// ListerWatcherWithContext knows how to list a collection and how to watch it.
type ListerWatcherWithContext = reflector.ListerWatcher

// Getter starts a GET request.
//
// Source: tools/cache/listwatch.go Getter
type Getter interface {
	Get() *rest.Request
}

// Lister knows how to list a collection.
//
// Deprecated: a ListerWithContext can be cancelled.
//
// Source: tools/cache/listwatch.go Lister
type Lister interface {
	// List returns a list object.
	List(options metav1.ListOptions) (runtime.Object, error)
}

// Watcher knows how to watch a collection.
//
// Deprecated: a WatcherWithContext can be cancelled.
//
// Source: tools/cache/listwatch.go Watcher
type Watcher interface {
	// Watch starts a watch at options.ResourceVersion.
	Watch(options metav1.ListOptions) (watch.Interface, error)
}

// ListerWatcher lists and watches a collection. An implementation should be a
// ListerWatcherWithContext too: its methods with a context are then used.
//
// Source: tools/cache/listwatch.go ListerWatcher
type ListerWatcher interface {
	Lister
	Watcher
}

// ListerWithContext knows how to list a collection.
//
// Source: tools/cache/listwatch.go ListerWithContext
type ListerWithContext interface {
	// ListWithContext returns a list object.
	ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
}

// WatcherWithContext knows how to watch a collection.
//
// Source: tools/cache/listwatch.go WatcherWithContext
type WatcherWithContext interface {
	// WatchWithContext starts a watch at options.ResourceVersion.
	WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// ToListerWithContext returns l itself if it supports contexts, else a wrapper that ignores them.
//
// Source: tools/cache/listwatch.go ToListerWithContext
func ToListerWithContext(l Lister) ListerWithContext {
	if l, ok := l.(ListerWithContext); ok {
		return l
	}
	return contextLister{l}
}

// ToWatcherWithContext returns w itself if it supports contexts, else a wrapper that ignores them.
//
// Source: tools/cache/listwatch.go ToWatcherWithContext
func ToWatcherWithContext(w Watcher) WatcherWithContext {
	if w, ok := w.(WatcherWithContext); ok {
		return w
	}
	return contextWatcher{w}
}

// ToListerWatcherWithContext returns lw itself if it supports contexts, else a wrapper that ignores
// them.
//
// Source: tools/cache/listwatch.go ToListerWatcherWithContext
func ToListerWatcherWithContext(lw ListerWatcher) ListerWatcherWithContext {
	if lw == nil {
		return nil
	}
	if lw, ok := lw.(ListerWatcherWithContext); ok {
		return lw
	}
	return contextListerWatcher{ToListerWithContext(lw), ToWatcherWithContext(lw), lw}
}

type contextLister struct{ lister Lister }

// ListWithContext implements ListerWithContext.
func (l contextLister) ListWithContext(
	_ context.Context, options metav1.ListOptions,
) (runtime.Object, error) {
	return l.lister.List(options)
}

type contextWatcher struct{ watcher Watcher }

// WatchWithContext implements WatcherWithContext.
func (w contextWatcher) WatchWithContext(
	_ context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	return w.watcher.Watch(options)
}

type contextListerWatcher struct {
	ListerWithContext
	WatcherWithContext
	inner ListerWatcher
}

var _ reflector.WatchListRefuser = contextListerWatcher{}

// IsWatchListSemanticsUnSupported returns the answer of inner.
func (lw contextListerWatcher) IsWatchListSemanticsUnSupported() bool {
	return refusesWatchList(lw.inner)
}

func refusesWatchList(client any) bool {
	refuser, ok := client.(reflector.WatchListRefuser)
	return ok && refuser.IsWatchListSemanticsUnSupported()
}

// ToListWatcherWithWatchListSemantics returns lw with the knowledge whether client, a clientset
// usually, has a server with streaming lists: fake ones have not.
//
// Source: tools/cache/listwatch.go ToListWatcherWithWatchListSemantics
func ToListWatcherWithWatchListSemantics(lw *ListWatch, client any) ListerWatcher {
	return &knowingListWatch{lw, refusesWatchList(client)}
}

type knowingListWatch struct {
	*ListWatch
	refuses bool
}

// IsWatchListSemanticsUnSupported implements reflector.WatchListRefuser.
func (lw *knowingListWatch) IsWatchListSemanticsUnSupported() bool { return lw.refuses }

// ListWithContextFunc is a ListerWithContext's ListWithContext as a function.
type ListWithContextFunc func(
	ctx context.Context, options metav1.ListOptions,
) (runtime.Object, error)

// WatchFuncWithContext is a WatcherWithContext's WatchWithContext as a function.
type WatchFuncWithContext func(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error)

// ListFunc is a Lister's List as a function.
type ListFunc func(options metav1.ListOptions) (runtime.Object, error)

// WatchFunc is a Watcher's Watch as a function.
type WatchFunc func(options metav1.ListOptions) (watch.Interface, error)

// ListWatch makes a ListerWatcher of functions. For lists and for watches one of both kinds must be
// set; each is used in place of the other where that is missing. The two older ones cannot be
// cancelled: what calls them waits no longer than its context, and leaves them behind.
//
// Source: tools/cache/listwatch.go ListWatch
type ListWatch struct {
	// ListFunc lists.
	//
	// Deprecated: ListWithContextFunc can be cancelled.
	ListFunc ListFunc
	// WatchFunc watches.
	//
	// Deprecated: WatchFuncWithContext can be cancelled.
	WatchFunc WatchFunc

	ListWithContextFunc  ListWithContextFunc
	WatchFuncWithContext WatchFuncWithContext

	// DisableChunking makes each LIST request all objects at once.
	DisableChunking bool
}

// NewListWatchFromClient returns a ListWatch of the objects of resource that fieldSelector selects,
// in namespace, or in all for "".
//
// Source: tools/cache/listwatch.go NewListWatchFromClient
func NewListWatchFromClient(
	c Getter, resource string, namespace string, fieldSelector fields.Selector,
) *ListWatch {
	selectFields := func(options *metav1.ListOptions) {
		options.FieldSelector = fieldSelector.String()
	}
	return NewFilteredListWatchFromClient(c, resource, namespace, selectFields)
}

// NewFilteredListWatchFromClient returns a ListWatch of resource in namespace, or in all for "".
// optionsModifier may change the options of each request. All four functions are set, for callers
// that read the older ones.
//
// Source: tools/cache/listwatch.go NewFilteredListWatchFromClient
func NewFilteredListWatchFromClient(
	c Getter, resource string, namespace string,
	optionsModifier func(options *metav1.ListOptions),
) *ListWatch {
	request := func(options metav1.ListOptions) *rest.Request {
		if optionsModifier != nil {
			optionsModifier(&options)
		}
		return c.Get().Namespace(namespace).Resource(resource).
			VersionedParams(&options, metav1.ParameterCodec)
	}
	list := func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return request(options).Do(ctx).Get()
	}
	watching := func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		options.Watch = true
		return request(options).Watch(ctx)
	}
	return &ListWatch{
		ListFunc: func(options metav1.ListOptions) (runtime.Object, error) {
			return list(context.Background(), options)
		},
		WatchFunc: func(options metav1.ListOptions) (watch.Interface, error) {
			return watching(context.Background(), options)
		},
		ListWithContextFunc:  list,
		WatchFuncWithContext: watching,
	}
}

// List calls ListFunc, or else ListWithContextFunc.
func (lw *ListWatch) List(options metav1.ListOptions) (runtime.Object, error) {
	if lw.ListFunc == nil {
		return lw.ListWithContext(context.Background(), options)
	}
	return lw.ListFunc(lw.unpaged(options))
}

// ListWithContext calls ListWithContextFunc, or else ListFunc.
func (lw *ListWatch) ListWithContext(
	ctx context.Context, options metav1.ListOptions,
) (runtime.Object, error) {
	if lw.ListWithContextFunc == nil {
		return lw.ListFunc(lw.unpaged(options))
	}
	return lw.ListWithContextFunc(ctx, lw.unpaged(options))
}

func (lw *ListWatch) unpaged(options metav1.ListOptions) metav1.ListOptions {
	if lw.DisableChunking {
		options.Limit = 0
	}
	return options
}

// Watch calls WatchFunc, or else WatchFuncWithContext.
func (lw *ListWatch) Watch(options metav1.ListOptions) (watch.Interface, error) {
	if lw.WatchFunc == nil {
		return lw.WatchFuncWithContext(context.Background(), options)
	}
	return lw.WatchFunc(options)
}

// WatchWithContext calls WatchFuncWithContext, or else WatchFunc.
func (lw *ListWatch) WatchWithContext(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	if lw.WatchFuncWithContext == nil {
		return lw.WatchFunc(options)
	}
	return lw.WatchFuncWithContext(ctx, options)
}
