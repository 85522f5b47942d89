// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"example.com/informerstack/internal/jsonlist"
)

// ListerWatcher knows how to list a collection and how to watch it from a resourceVersion.
//
// client-go's ListWatch, and so every generated informer's, is one. A result must not be nil when
// the error is; both methods should return soon after ctx is done. The optional interfaces
// StreamLister and WatchListRefuser say more about a ListerWatcher; what wraps one should pass them
// on.
//
// Source: tools/cache/listwatch.go ListerWatcherWithContext
type ListerWatcher interface {
	// ListWithContext returns a list object: one that meta.EachListItem and meta.ListAccessor
	// understand. A list without a resourceVersion is accepted: the watch then starts with whatever
	// the server has, and what is deleted between the two is not noticed.
	ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	// WatchWithContext starts a watch at options.ResourceVersion. The caller stops it, then cancels
	// ctx.
	WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// StreamLister is a ListerWatcher that can hand over the items of a list one by one while it is
// still being received. The reflector then calls ListStream instead of ListWithContext, also for
// each page.
type StreamLister interface {
	// ListStream calls each with the items in order, and returns the list's metadata. It stops at
	// the first error of each and returns that.
	ListStream(
		ctx context.Context, options metav1.ListOptions, each func(runtime.Object) error,
	) (metav1.ListMeta, error)
}

// WatchListRefuser is a ListerWatcher that knows that its server has no streaming lists, as
// client-go's fake clientsets do.
//
// Source: tools/cache/listwatch.go ToListWatcherWithWatchListSemantics
type WatchListRefuser interface {
	IsWatchListSemanticsUnSupported() bool
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

// Getter starts a GET request. rest.Interface is one.
//
// Source: tools/cache/listwatch.go Getter
type Getter interface {
	Get() *rest.Request
}

// StreamingListWatch is a ListerWatcher and StreamLister: it decodes a LIST item by item while it
// is being received, so that the bytes of the whole list, and objects as they were before a
// transform, are never in memory together.
type StreamingListWatch struct {
	*ListWatch
	newItem func() runtime.Object
	list    func(options metav1.ListOptions) *rest.Request
}

// NewStreamingListWatch returns a StreamingListWatch of resource in namespace, or in all for "".
// newItem makes an empty object of the type that c decodes watch events to: a pointer to a typed
// object, *unstructured.Unstructured, or *metav1.PartialObjectMetadata, which also makes the server
// send metadata alone. optionsModifier may change the options of each request, mostly to set
// selectors; nil changes nothing. LISTs are requested in JSON, whatever c prefers.
func NewStreamingListWatch(
	c Getter, resource, namespace string,
	newItem func() runtime.Object, optionsModifier func(options *metav1.ListOptions),
) *StreamingListWatch {
	listAs, watchAs := "application/json", ""
	if _, ok := newItem().(*metav1.PartialObjectMetadata); ok {
		const metadataOnly = "application/json;as=%s;g=meta.k8s.io;v=v1,application/json"
		listAs = fmt.Sprintf(metadataOnly, "PartialObjectMetadataList")
		watchAs = fmt.Sprintf(metadataOnly, "PartialObjectMetadata")
	}
	request := func(options metav1.ListOptions, accept string) *rest.Request {
		if optionsModifier != nil {
			optionsModifier(&options)
		}
		req := c.Get().Namespace(namespace).Resource(resource).
			VersionedParams(&options, metav1.ParameterCodec)
		if accept != "" {
			req.SetHeader("Accept", accept)
		}
		return req
	}
	list := func(o metav1.ListOptions) *rest.Request { return request(o, listAs) }
	listWatch := &ListWatch{
		ListWithContextFunc: func(
			ctx context.Context, o metav1.ListOptions,
		) (runtime.Object, error) {
			return list(o).Do(ctx).Get()
		},
		WatchFuncWithContext: func(
			ctx context.Context, o metav1.ListOptions,
		) (watch.Interface, error) {
			o.Watch = true
			return request(o, watchAs).Watch(ctx)
		},
	}
	return &StreamingListWatch{ListWatch: listWatch, newItem: newItem, list: list}
}

// ListStream implements StreamLister. An error that the server sends is the *errors.StatusError
// that ListWithContext would return.
func (lw *StreamingListWatch) ListStream(
	ctx context.Context, options metav1.ListOptions, each func(runtime.Object) error,
) (metav1.ListMeta, error) {
	body, err := lw.list(options).Stream(ctx)
	if err != nil {
		return metav1.ListMeta{}, err
	}
	defer body.Close()
	return jsonlist.Decode(body, lw.newItem, each)
}
