// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/reflector"
)

// The names that package reflector has too.
type (
	// ListerWatcherWithContext knows how to list a collection and how to watch it.
	ListerWatcherWithContext = reflector.ListerWatcher
	// ListWithContextFunc is its ListWithContext as a function.
	ListWithContextFunc = reflector.ListWithContextFunc
	// WatchFuncWithContext is its WatchWithContext as a function.
	WatchFuncWithContext = reflector.WatchFuncWithContext
	// Getter starts a GET request.
	Getter = reflector.Getter
)

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

// ListerWatcher knows how to list a collection and how to watch it. An implementation should be a
// ListerWatcherWithContext too; then that is used.
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
func (l contextLister) ListWithContext(_ context.Context,
	options metav1.ListOptions) (runtime.Object, error) {
	return l.lister.List(options)
}

type contextWatcher struct{ watcher Watcher }

// WatchWithContext implements WatcherWithContext.
func (w contextWatcher) WatchWithContext(_ context.Context,
	options metav1.ListOptions) (watch.Interface, error) {
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

// ToListWatcherWithWatchListSemantics returns lw with the information whether the server of client,
// usually a clientset, supports streaming lists; fake clientsets do not.
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

// ListFunc is a Lister's List as a function.
type ListFunc func(options metav1.ListOptions) (runtime.Object, error)

// WatchFunc is a Watcher's Watch as a function.
type WatchFunc func(options metav1.ListOptions) (watch.Interface, error)

// ListWatch makes a ListerWatcher from functions. One function for lists and one for watches must
// be set, with or without a context. The functions without a context cannot be cancelled: their
// caller stops waiting when its context ends, and leaves them running.
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

// NewListWatchFromClient returns a ListWatch of the objects of resource in namespace, or in all for
// "", that fieldSelector selects.
//
// Source: tools/cache/listwatch.go NewListWatchFromClient
func NewListWatchFromClient(c Getter, resource string, namespace string,
	fieldSelector fields.Selector) *ListWatch {
	return listWatchOf(reflector.NewListWatchFromClient(c, resource, namespace, fieldSelector))
}

// NewFilteredListWatchFromClient returns a ListWatch of resource in namespace, or in all for "".
// optionsModifier may change the options of each request.
//
// Source: tools/cache/listwatch.go NewFilteredListWatchFromClient
func NewFilteredListWatchFromClient(c Getter, resource string, namespace string,
	optionsModifier func(options *metav1.ListOptions)) *ListWatch {
	return listWatchOf(
		reflector.NewFilteredListWatchFromClient(c, resource, namespace, optionsModifier))
}

// listWatchOf sets all four functions, for callers that use the older ones.
func listWatchOf(lw *reflector.ListWatch) *ListWatch {
	return &ListWatch{
		ListFunc:             lw.List,
		WatchFunc:            lw.Watch,
		ListWithContextFunc:  lw.ListWithContextFunc,
		WatchFuncWithContext: lw.WatchFuncWithContext,
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
func (lw *ListWatch) ListWithContext(ctx context.Context,
	options metav1.ListOptions) (runtime.Object, error) {
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
func (lw *ListWatch) WatchWithContext(ctx context.Context,
	options metav1.ListOptions) (watch.Interface, error) {
	if lw.WatchFuncWithContext == nil {
		return lw.WatchFunc(options)
	}
	return lw.WatchFuncWithContext(ctx, options)
}
