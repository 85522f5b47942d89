// SPDX-License-Identifier: Apache-2.0

package foo_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/e2e/cluster"
	"example.com/informerstack/e2e/foo/api"
)

// servers are the servers that a controller must work on.
var servers = []struct {
	name  string
	start func(t *testing.T) *rest.Config
}{
	{"apitest", startApitest},
	{"kube-apiserver", startCluster},
}

func startApitest(t *testing.T) *rest.Config {
	server := apitest.NewServer(apitest.Options{Scheme: scheme.Scheme})
	require.NoError(t, server.Start())
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL, Transport: server.Transport(), QPS: -1}
}

func startCluster(t *testing.T) *rest.Config {
	return cluster.New(t, cluster.Options{}).Config(cluster.AdminToken)
}

// define applies crd.yaml and returns when Foos are served.
func define(t *testing.T, config *rest.Config) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	definitions := client.Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	crd := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal(api.CRD, crd))
	_, err = definitions.Create(t.Context(), crd, metav1.CreateOptions{})
	require.NoError(t, err)
	eventually(t, func(t *assert.CollectT, ctx context.Context) {
		crd, err := definitions.Get(ctx, crd.GetName(), metav1.GetOptions{})
		require.NoError(t, err)
		conditions, _, err := unstructured.NestedSlice(crd.Object, "status", "conditions")
		require.NoError(t, err)
		require.True(t, slices.ContainsFunc(conditions, isEstablished), "%v", conditions)
	})
	foos, err := api.NewForConfig(config)
	require.NoError(t, err)
	// a kind is established a little before it is served
	eventually(t, func(t *assert.CollectT, ctx context.Context) {
		_, err := foos.Foos("").List(ctx, metav1.ListOptions{})
		require.NoError(t, err)
	})
}

func isEstablished(condition any) bool {
	fields, ok := condition.(map[string]any)
	return ok && fields["type"] == "Established" && fields["status"] == "True"
}
