// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"example.com/informerstack/e2e/fixture"
	"example.com/informerstack/realserver/cluster"
	"example.com/informerstack/reflector/wire"
)

// restClient returns a client for the group and version of resource.
func restClient(
	t *testing.T, config *rest.Config, resource schema.GroupVersionResource,
) *rest.RESTClient {
	t.Helper()
	config = rest.CopyConfig(config)
	gv := resource.GroupVersion()
	config.GroupVersion = &gv
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	config.APIPath = "/apis"
	if resource.Group == "" {
		config.APIPath = "/api"
	}
	client, err := rest.RESTClientFor(config)
	require.NoError(t, err)
	return client
}

// collect returns the objects of a list by name.
func collect(t *testing.T, list runtime.Object, err error) map[string]runtime.Object {
	t.Helper()
	require.NoError(t, err)
	got := map[string]runtime.Object{}
	require.NoError(t, meta.EachListItem(list, func(obj runtime.Object) error {
		got[obj.(metav1.Object).GetName()] = obj
		return nil
	}))
	return got
}

// follow returns the first events of a streaming list, by name, and its end bookmark as "".
func follow(
	t *testing.T, open func(context.Context, metav1.ListOptions) (watch.Interface, error),
) map[string]watch.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	w, err := open(ctx, metav1.ListOptions{
		SendInitialEvents: new(true), AllowWatchBookmarks: true,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	})
	require.NoError(t, err)
	defer w.Stop()
	got := map[string]watch.Event{}
	for e := range w.ResultChan() {
		require.NotEqual(t, watch.Error, e.Type, "%v", e.Object)
		got[e.Object.(metav1.Object).GetName()] = e
		if e.Type == watch.Bookmark {
			obj := e.Object.(metav1.Object)
			require.Contains(t, obj.GetAnnotations(), metav1.InitialEventsAnnotationKey)
			obj.SetResourceVersion("") // may have moved on
			return got
		}
	}
	require.Fail(t, "the watch ended")
	return nil
}

// Objects of a real server are read as by client-go's typed, dynamic and metadata clients, in lists
// and in streaming lists.
func TestWire_ReadsAsClientGo(t *testing.T) {
	config := shared.Config(cluster.AdminToken)
	maps := newConfigMaps(t, shared)
	for i := range 20 {
		maps.create(fmt.Sprint("a", i), map[string]string{"app": "web"})
	}
	dynamicClient, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	metadataClient, err := metadata.NewForConfig(config)
	require.NoError(t, err)
	defineWidgets(t, dynamicClient)
	all := metav1.ListOptions{}

	for _, test := range []struct {
		resource schema.GroupVersionResource
		item     func() runtime.Object // nil for a custom resource
		list     runtime.Object
	}{
		{configMapResource, func() runtime.Object { return &corev1.ConfigMap{} },
			&corev1.ConfigMapList{}},
		{rbacv1.SchemeGroupVersion.WithResource("clusterroles"),
			func() runtime.Object { return &rbacv1.ClusterRole{} }, &rbacv1.ClusterRoleList{}},
		{flowcontrolv1.SchemeGroupVersion.WithResource("flowschemas"),
			func() runtime.Object { return &flowcontrolv1.FlowSchema{} },
			&flowcontrolv1.FlowSchemaList{}},
		{schedulingv1.SchemeGroupVersion.WithResource("priorityclasses"),
			func() runtime.Object { return &schedulingv1.PriorityClass{} },
			&schedulingv1.PriorityClassList{}},
		{widgets, nil, nil},
	} {
		client := restClient(t, config, test.resource)
		read := func(newObject wire.NewObject) (map[string]runtime.Object, map[string]watch.Event) {
			lw := wire.NewListWatch(client, test.resource.Resource, "", newObject, wire.Options{})
			items := map[string]runtime.Object{}
			m, err := lw.ListStream(t.Context(), metav1.ListOptions{},
				func(obj runtime.Object) error {
					items[obj.(metav1.Object).GetName()] = obj
					return nil
				})
			require.NoError(t, err)
			require.NotEmpty(t, m.ResourceVersion)
			return items, follow(t, lw.WatchWithContext)
		}
		t.Run(test.resource.Resource+" typed", func(t *testing.T) {
			if test.item == nil {
				t.Skip("has no Go type")
			}
			items, events := read(test.item)
			err := client.Get().Resource(test.resource.Resource).Do(t.Context()).Into(test.list)
			require.Equal(t, collect(t, test.list, err), items)
			require.Equal(t, follow(t, func(
				ctx context.Context, options metav1.ListOptions,
			) (watch.Interface, error) {
				options.Watch = true
				return client.Get().Resource(test.resource.Resource).
					VersionedParams(&options, metav1.ParameterCodec).Watch(ctx)
			}), events)
			require.Len(t, events, len(items)+1)
		})
		t.Run(test.resource.Resource+" dynamic", func(t *testing.T) {
			items, events := read(func() runtime.Object { return &unstructured.Unstructured{} })
			list, err := dynamicClient.Resource(test.resource).List(t.Context(), all)
			require.Equal(t, collect(t, list, err), items)
			require.Equal(t, follow(t, dynamicClient.Resource(test.resource).Watch), events)
		})
		t.Run(test.resource.Resource+" metadata", func(t *testing.T) {
			items, events := read(func() runtime.Object { return &metav1.PartialObjectMetadata{} })
			list, err := metadataClient.Resource(test.resource).List(t.Context(), all)
			require.Equal(t, collect(t, list, err), items)
			require.Equal(t, follow(t, metadataClient.Resource(test.resource).Watch), events)
		})
	}
}

var widgets = schema.GroupVersionResource{
	Group: "wire.example.com", Version: "v1", Resource: "widgets",
}

// defineWidgets makes a custom resource with two objects.
func defineWidgets(t *testing.T, client dynamic.Interface) {
	t.Helper()
	fixture.Define(t, shared.Config(cluster.AdminToken),
		fixture.Definition(widgets, "Widget", "Cluster"))
	t.Cleanup(func() {
		_ = client.Resource(fixture.Definitions).Delete(context.Background(),
			widgets.GroupResource().String(), metav1.DeleteOptions{})
	})
	for _, name := range []string{"a", "b"} {
		_, err := client.Resource(widgets).Create(t.Context(), &unstructured.Unstructured{
			Object: map[string]any{
				"apiVersion": "wire.example.com/v1", "kind": "Widget",
				"metadata": map[string]any{"name": name},
				"things":   []any{int64(1), 2.5, "c", nil},
			},
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
}
