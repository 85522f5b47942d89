// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"context"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/compat/decoding"
	"example.com/informerstack/reflector"
	"example.com/informerstack/reflector/wire"
)

// decoderVariable is the environment variable that turns faster decoders off, with the value
// client-go.
const decoderVariable = "INFORMERSTACK_DECODER"

// sourceOf returns what the reflector called name lists and watches: lw, with faster decoders in a
// program under informerstack swap.
func sourceOf(lw ListerWatcherWithContext, name string) ListerWatcherWithContext {
	_, decodes := lw.(reflector.StreamLister)
	if lw != nil && !decodes && os.Getenv(decoderVariable) != "client-go" {
		lw = decodedListWatch{lw, wire.NewNegotiator()}
	}
	return checkedStreams(lw, name)
}

// decodedListWatch puts faster decoders into the context of each request.
type decodedListWatch struct {
	ListerWatcherWithContext
	negotiator *wire.Negotiator
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
	return lw.ListerWatcherWithContext.ListWithContext(
		decoding.With(ctx, lw.negotiator.Faster), options)
}

// WatchWithContext implements reflector.ListerWatcher.
func (lw decodedListWatch) WatchWithContext(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	return lw.ListerWatcherWithContext.WatchWithContext(
		decoding.With(ctx, lw.negotiator.Faster), options)
}
