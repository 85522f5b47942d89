// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"example.com/informerstack/reflector/wire"
)

// The reflector streams each page of a LIST, and transforms its items before it requests the next.
func TestStreamLister(t *testing.T) {
	var order []string
	w := &roundTripper{}
	w.answer = func(req *http.Request) (int, io.Reader) {
		order = append(order, "request")
		list := podList("5", "", "b@2")
		if req.URL.Query().Get("continue") == "" {
			list = podList("5", "next", "a@1")
		}
		list.Kind, list.APIVersion = "PodList", "v1"
		body, err := json.Marshal(list)
		require.NoError(t, err)
		return http.StatusOK, bytes.NewReader(body)
	}
	lw := wire.NewListWatch(restClient(t, w), "pods", "", newPod, wire.Options{})
	r := New(lw, &v1.Pod{}, nil, Options{Transform: func(obj any) (any, error) {
		order = append(order, "transform "+obj.(*v1.Pod).Name)
		return obj, nil
	}})
	got, err := r.fetch(context.Background(), "0", 500)
	require.NoError(t, err)
	require.Len(t, got.items, 2)
	require.True(t, got.paged)
	require.Equal(t, []string{"request", "transform a", "request", "transform b"}, order)
	require.Equal(t, "continue=next&limit=500", w.requests[1].URL.RawQuery)
}
