// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"errors"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	clientgo "k8s.io/client-go/tools/cache"

	"example.com/informerstack/compat/cache"
)

// noted is a client that records the requested paths and answers no request.
type noted struct{ asked log }

func (n *noted) RoundTrip(r *http.Request) (*http.Response, error) {
	n.asked.note("%s?%s", r.URL.Path, r.URL.Query().Encode())
	return nil, errors.New("no answer")
}

func (n *noted) Get() *rest.Request {
	return rest.NewRequestWithClient(
		&url.URL{Scheme: "http", Host: "server"}, "api", rest.ClientContentConfig{},
		&http.Client{Transport: n},
	).
		Verb("GET")
}

// All four functions are set, as callers look at the older ones, and ask for the same as
// client-go's.
func TestNewListWatchFromClient_AsInClientGo(t *testing.T) {
	client := &noted{}
	mine := fields.OneTermEqualSelector("spec.nodeName", "mine")
	modify := func(options *metav1.ListOptions) { options.LabelSelector = "mine=yes" }
	options := metav1.ListOptions{ResourceVersion: "7"}

	type both interface {
		cache.ListerWatcher
		cache.ListerWatcherWithContext
	}
	ask := func(selected, filtered both) []string {
		for _, lw := range []both{selected, filtered} {
			_, listErr := lw.List(options)
			_, listContextErr := lw.ListWithContext(t.Context(), options)
			_, watchErr := lw.Watch(options)
			_, watchContextErr := lw.WatchWithContext(t.Context(), options)
			for _, err := range []error{listErr, listContextErr, watchErr, watchContextErr} {
				require.ErrorContains(t, err, "no answer")
			}
		}
		return client.asked.take()
	}
	ours := cache.NewListWatchFromClient(client, "pods", "ns", mine)
	for what, set := range map[string]bool{
		"list": ours.ListFunc != nil, "watch": ours.WatchFunc != nil,
		"list with context":  ours.ListWithContextFunc != nil,
		"watch with context": ours.WatchFuncWithContext != nil,
	} {
		require.True(t, set, what)
	}
	got := ask(ours, cache.NewFilteredListWatchFromClient(client, "pods", "", modify))
	want := ask(clientgo.NewListWatchFromClient(client, "pods", "ns", mine),
		clientgo.NewFilteredListWatchFromClient(client, "pods", "", modify))
	require.Len(t, got, 8)
	require.Equal(t, want, got)
}
