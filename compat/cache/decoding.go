// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"net/url"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/compat/decoding"
	"example.com/informerstack/reflector"
)

// sourceOf returns the ListerWatcher of the reflector called name: lw, with faster decoders in a
// program under informerstack swap. If selected is not nil, it learns from the requests.
func sourceOf(
	lw ListerWatcherWithContext, name string, selected *selection,
) ListerWatcherWithContext {
	if _, decodes := lw.(reflector.StreamLister); lw != nil && !decodes {
		d := decodedListWatch{ListerWatcherWithContext: lw, selected: selected}
		if os.Getenv(decoding.Environment) != "client-go" {
			d.faster = decoding.Faster()
		}
		lw = d
	}
	return checkedStreams(lw, name)
}

// decodedListWatch puts a choice of decoders into the context of each request.
type decodedListWatch struct {
	ListerWatcherWithContext
	// faster, if not nil, makes a client's decoders faster.
	faster   func(client runtime.ClientNegotiator) runtime.ClientNegotiator
	selected *selection // nil: the requests are not looked at
}

var _ reflector.WatchListRefuser = decodedListWatch{}

// IsWatchListSemanticsUnSupported implements reflector.WatchListRefuser.
func (lw decodedListWatch) IsWatchListSemanticsUnSupported() bool {
	return refusesWatchList(lw.ListerWatcherWithContext)
}

// ListWithContext implements reflector.ListerWatcher.
func (lw decodedListWatch) ListWithContext(
	ctx context.Context, options metav1.ListOptions,
) (runtime.Object, error) {
	return lw.ListerWatcherWithContext.ListWithContext(lw.with(ctx), options)
}

// WatchWithContext implements reflector.ListerWatcher.
func (lw decodedListWatch) WatchWithContext(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	return lw.ListerWatcherWithContext.WatchWithContext(lw.with(ctx), options)
}

// with returns ctx for the requests of one LIST or WATCH.
func (lw decodedListWatch) with(ctx context.Context) context.Context {
	learn := lw.selected.learner()
	if learn != nil {
		ctx = withTrace(ctx, learn)
	}
	return decoding.With(ctx, func(
		client runtime.ClientNegotiator, at func() *url.URL,
	) runtime.ClientNegotiator {
		if learn != nil {
			learn(at())
		}
		if lw.faster == nil {
			return client
		}
		return lw.faster(client)
	})
}
