// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// ListerWatcher knows how to list a collection and how to watch it from a resourceVersion.
//
// client-go's ListWatch, and so every generated informer's, is a ListerWatcher. If the error is
// nil, the result must not be nil. Both methods should return soon after ctx is done. The optional
// interfaces StreamLister and WatchListRefuser say more about a ListerWatcher, and Reselector about
// a watch; a wrapper should implement them if the wrapped one does.
//
// Source: tools/cache/listwatch.go ListerWatcherWithContext
type ListerWatcher interface {
	// ListWithContext returns a list object: one that meta.EachListItem and meta.ListAccessor
	// understand. A list without a resourceVersion is accepted: the watch then starts with whatever
	// the server has, and what is deleted between the two is not noticed.
	ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	// WatchWithContext starts a watch at options.ResourceVersion. The caller stops it, then cancels
	// ctx. A watch of watch.NewEmptyWatch means that the server cannot be reached, as with package
	// rest; what wraps watches should pass it on as it is.
	WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// StreamLister is a ListerWatcher that can hand over the items of a list one by one while it is
// still being received. The reflector then calls ListStream instead of ListWithContext, once for
// each page.
type StreamLister interface {
	// ListStream calls each with the items in order, and returns the list's metadata. It stops at
	// the first error of each and returns that. If it knows without a request that the list is
	// empty, it returns the metadata with a *KnownEmptyError.
	ListStream(
		ctx context.Context, options metav1.ListOptions, each func(runtime.Object) error,
	) (metav1.ListMeta, error)
}

// KnownEmptyError is returned for a list that is known to be empty without a request. To a
// reflector it is a list, but no answer of the server.
type KnownEmptyError struct {
	AsOf time.Time // when the collection was known to be empty
	Why  error     // not nil: see Selection.Inferred
}

// Error says why the list is known to be empty.
func (e *KnownEmptyError) Error() string { return "the list is empty: " + e.Why.Error() }

// Unwrap returns Why.
func (e *KnownEmptyError) Unwrap() error { return e.Why }

// WatchListRefuser is a ListerWatcher that knows that its server has no streaming lists, as
// client-go's fake clientsets do.
//
// Source: tools/cache/listwatch.go ToListWatcherWithWatchListSemantics
type WatchListRefuser interface {
	IsWatchListSemanticsUnSupported() bool
}

// Reselector is a watch that its ListerWatcher can end in order to select other objects.
type Reselector interface {
	watch.Interface
	// Reselected is called when the watch has ended without an error. If the ListerWatcher has
	// ended it, Reselected returns the content of the new selection, which replaces that of the
	// Store; otherwise nil. The reflector opens the next watch at once, however short this one was.
	Reselected() *Selection
}

// Selection is a list that a ListerWatcher has made beside a watch, or knows without one.
type Selection struct {
	// Items are the objects at ResourceVersion. If the watch has brought newer changes already, it
	// has them, and the next watch must not bring them again.
	Items           []runtime.Object
	ResourceVersion string
	AsOf            time.Time // when the list was requested
	// Inferred, if not nil, says that nothing was requested, and why: the content follows from
	// something else. Metrics and Status.LastContact do not count it. A wait for a newer version,
	// begun before AsOf, ends with this error: see WaitForResourceVersion of an informer.
	Inferred error
}

// ListWatch makes a ListerWatcher of two functions. Both must be set.
//
// Source: tools/cache/listwatch.go ListWatch
type ListWatch struct {
	ListWithContextFunc func(
		ctx context.Context, options metav1.ListOptions,
	) (runtime.Object, error)
	WatchFuncWithContext func(
		ctx context.Context, options metav1.ListOptions,
	) (watch.Interface, error)
}

// ListWithContext calls ListWithContextFunc.
func (lw *ListWatch) ListWithContext(
	ctx context.Context, options metav1.ListOptions,
) (runtime.Object, error) {
	return lw.ListWithContextFunc(ctx, options)
}

// WatchWithContext calls WatchFuncWithContext.
func (lw *ListWatch) WatchWithContext(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	return lw.WatchFuncWithContext(ctx, options)
}

// List is ListWithContext for callers without a context.
func (lw *ListWatch) List(options metav1.ListOptions) (runtime.Object, error) {
	return lw.ListWithContext(context.Background(), options)
}

// Watch is WatchWithContext for callers without a context.
func (lw *ListWatch) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return lw.WatchWithContext(context.Background(), options)
}
