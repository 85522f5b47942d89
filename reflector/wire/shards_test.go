// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
)

// A server knows shard selectors or ignores them. Without an object, only the list of a built-in
// kind shows which.
func TestDetectShards(t *testing.T) {
	for _, tc := range []struct {
		name, resource      string
		ignores, hasObjects bool
		want                bool
		wantErr             error
		requests            int
	}{
		{name: "knows", resource: "pods", hasObjects: true, want: true, requests: 1},
		{name: "knows, empty", resource: "pods", want: true, requests: 1},
		{name: "ignores", resource: "pods", ignores: true, hasObjects: true, requests: 1},
		{name: "ignores, empty", resource: "pods", ignores: true, wantErr: ErrShardsUnknown,
			requests: 2},
		{name: "knows, custom", resource: "widgets", hasObjects: true, want: true, requests: 2},
		{name: "knows, custom, empty", resource: "widgets", wantErr: ErrShardsUnknown, requests: 2},
		{name: "ignores, custom", resource: "widgets", ignores: true, hasObjects: true,
			requests: 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := shardServer(t, apitest.Options{NoShards: tc.ignores})
			if tc.hasObjects {
				createShards(t, server, "a", "b", "c")
			}
			client := shardClient(t, server, tc.resource)
			got, err := DetectShards(t.Context(), client, tc.resource, "default")
			require.ErrorIs(t, err, tc.wantErr)
			require.Equal(t, tc.want, got)
			lists := server.Requests(apitest.Match{Verb: "list", Resource: tc.resource})
			require.Len(t, lists, tc.requests)
		})
	}
}

func TestDetectShards_Failure(t *testing.T) {
	server := shardServer(t, apitest.Options{})
	server.Faults().Fail(1, apitest.Match{Resource: "pods"},
		apierrors.NewForbidden(schema.GroupResource{}, "", nil))
	got, err := DetectShards(t.Context(), shardClient(t, server, "pods"), "pods", "default")
	require.True(t, apierrors.IsForbidden(err), "%v", err)
	require.ErrorContains(t, err, "detect shards of pods")
	require.False(t, got)
}

// The metadata of a list repeats the selector, in JSON and in protobuf.
func TestReadList_ShardInfo(t *testing.T) {
	list := &v1.PodList{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
		ListMeta: metav1.ListMeta{
			ResourceVersion: "5", ShardInfo: &metav1.ShardInfo{Selector: "s"},
		},
		Items: []v1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}},
	}
	for _, format := range []string{jsonStream, protobufStream} {
		body := encodeList(t, format, list)
		m, err := ReadList(bytes.NewReader(body), newPod, Options{},
			func(runtime.Object) error { return nil })
		require.NoError(t, err)
		require.Equal(t, list.ListMeta, m)
	}
}

func shardServer(t *testing.T, options apitest.Options) *apitest.Server {
	options.Resources = []apitest.Resource{{Group: "example.com", Version: "v1", Kind: "Widget",
		Plural: "widgets", Namespaced: true}}
	server := apitest.NewServer(options)
	require.NoError(t, server.Start())
	t.Cleanup(server.Close)
	return server
}

func createShards(t *testing.T, server *apitest.Server, names ...string) {
	for _, name := range names {
		widget := &unstructured.Unstructured{}
		widget.SetAPIVersion("example.com/v1")
		widget.SetKind("Widget")
		widget.SetNamespace("default")
		widget.SetName(name)
		pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		require.NoError(t, server.Create(widget))
		require.NoError(t, server.Create(pod))
	}
}

func shardClient(t *testing.T, server *apitest.Server, resource string) *rest.RESTClient {
	config := restConfig(t)
	config.Host = server.URL
	if resource == "widgets" {
		config.APIPath = "/apis"
		config.GroupVersion = &schema.GroupVersion{Group: "example.com", Version: "v1"}
	}
	client, err := rest.RESTClientForConfigAndClient(config, server.Client())
	require.NoError(t, err)
	return client
}
