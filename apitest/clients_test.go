// SPDX-License-Identifier: Apache-2.0

package apitest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/apitest"
)

// config is how client-go reaches the server.
func config(s *apitest.Server) *rest.Config {
	return &rest.Config{Host: s.URL, Transport: s.Transport(), QPS: -1}
}

// start returns a server that is reached over loopback.
func start(t testing.TB, options apitest.Options) *apitest.Server {
	s := apitest.NewServer(options)
	require.NoError(t, s.Start())
	t.Cleanup(s.Close)
	return s
}

// bubble runs a test with a server that lives in its synctest bubble.
func bubble(t *testing.T, options apitest.Options, body func(t *testing.T, s *apitest.Server)) {
	synctest.Test(t, func(t *testing.T) {
		s := apitest.NewServer(options)
		require.NoError(t, s.StartPipe())
		defer s.Close()
		body(t, s)
	})
}

func configMap(namespace, name string, data ...string) *corev1.ConfigMap {
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for i := 0; i+1 < len(data); i += 2 {
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		cm.Data[data[i]] = data[i+1]
	}
	return cm
}

func TestTypedClient(t *testing.T) {
	// "" lets typed clients send protobuf
	for _, contentType := range []string{"", "application/json"} {
		t.Run("contentType="+contentType, func(t *testing.T) {
			ctx := t.Context()
			s := start(t, apitest.Options{Scheme: scheme.Scheme})
			cfg := config(s)
			cfg.ContentType = contentType
			maps := kubernetes.NewForConfigOrDie(cfg).CoreV1().ConfigMaps("default")

			made, err := maps.Create(ctx, configMap("", "a", "k", "v"), metav1.CreateOptions{})
			require.NoError(t, err)
			assert.NotEmpty(t, made.UID)
			assert.NotEmpty(t, made.ResourceVersion)
			assert.False(t, made.CreationTimestamp.IsZero())
			assert.Equal(t, "v", made.Data["k"])

			stale := made.DeepCopy()
			made.Data["k"] = "w"
			_, err = maps.Update(ctx, made, metav1.UpdateOptions{})
			require.NoError(t, err)
			_, err = maps.Update(ctx, stale, metav1.UpdateOptions{})
			assert.True(t, apierrors.IsConflict(err))

			patched, err := maps.Patch(ctx, "a", types.MergePatchType, []byte(`{"data":{"x":"y"}}`),
				metav1.PatchOptions{})
			require.NoError(t, err)
			assert.Equal(t, map[string]string{"k": "w", "x": "y"}, patched.Data)

			list, err := maps.List(ctx, metav1.ListOptions{})
			require.NoError(t, err)
			require.Len(t, list.Items, 1)
			assert.Equal(t, s.ResourceVersion(), list.ResourceVersion)

			uid := types.UID("other")
			err = maps.Delete(ctx, "a",
				metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
			assert.True(t, apierrors.IsConflict(err))
			require.NoError(t, maps.Delete(ctx, "a", metav1.DeleteOptions{}))
			_, err = maps.Get(ctx, "a", metav1.GetOptions{})
			assert.EqualError(t, err, `configmaps "a" not found`)
		})
	}
}

func TestDynamicClient(t *testing.T) {
	ctx := t.Context()
	s := start(t, apitest.Options{Resources: []apitest.Resource{
		{Group: "example.com", Version: "v1", Kind: "Widget", Plural: "widgets", Namespaced: true,
			Status: true},
	}})
	client := dynamic.NewForConfigOrDie(config(s))
	widgets := client.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1",
		Resource: "widgets"}).Namespace("default")
	w := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"generateName": "w-"},
		"spec":     map[string]any{"size": int64(1)}, "status": map[string]any{"ready": true},
	}}
	made, err := widgets.Create(ctx, w, metav1.CreateOptions{})
	require.NoError(t, err)
	assert.Regexp(t, `^w-[a-z0-9]{5}$`, made.GetName())
	assert.EqualValues(t, 1, made.GetGeneration())
	assert.NotContains(t, made.Object, "status", "status is a subresource")

	require.NoError(t, unstructured.SetNestedField(made.Object, true, "status", "ready"))
	require.NoError(t, unstructured.SetNestedField(made.Object, int64(7), "spec", "size"))
	made, err = widgets.UpdateStatus(ctx, made, metav1.UpdateOptions{})
	require.NoError(t, err)
	size, _, _ := unstructured.NestedInt64(made.Object, "spec", "size")
	assert.EqualValues(t, 1, size, "a status update leaves the spec alone")
	assert.EqualValues(t, 1, made.GetGeneration())

	require.NoError(t, unstructured.SetNestedField(made.Object, int64(7), "spec", "size"))
	made, err = widgets.Update(ctx, made, metav1.UpdateOptions{})
	require.NoError(t, err)
	assert.EqualValues(t, 2, made.GetGeneration())
	ready, _, _ := unstructured.NestedBool(made.Object, "status", "ready")
	assert.True(t, ready, "an update leaves the status alone")
}

func TestDiscoveryAndMapper(t *testing.T) {
	s := start(t, apitest.Options{})
	for _, legacy := range []bool{false, true} {
		client := discovery.NewDiscoveryClientForConfigOrDie(config(s))
		client.UseLegacyDiscovery = legacy
		groups, err := restmapper.GetAPIGroupResources(client)
		require.NoError(t, err)
		mapper := restmapper.NewDiscoveryRESTMapper(groups)
		mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"})
		require.NoError(t, err)
		assert.Equal(t, "deployments", mapping.Resource.Resource)
		short := restmapper.NewShortcutExpander(mapper, client, nil)
		gvr, err := short.ResourceFor(schema.GroupVersionResource{Resource: "cm"})
		require.NoError(t, err)
		assert.Equal(t, "configmaps", gvr.Resource)
		version, err := client.ServerVersion()
		require.NoError(t, err)
		assert.Equal(t, "37", version.Minor)
	}
}

func TestMetadataClient(t *testing.T) {
	s := start(t, apitest.Options{})
	require.NoError(t, s.Create(configMap("default", "a", "k", "v")))
	client := metadata.NewForConfigOrDie(config(s)).Resource(
		corev1.SchemeGroupVersion.WithResource("configmaps"))
	list, err := client.List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	assert.Equal(t, "PartialObjectMetadata", list.Items[0].Kind)
	one, err := client.Namespace("default").Get(t.Context(), "a", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, "a", one.Name)
}

// client-go's own informer works against the server, streaming lists included, in a bubble.
func TestInformerInBubble(t *testing.T) {
	bubble(t, apitest.Options{Scheme: scheme.Scheme}, func(t *testing.T, s *apitest.Server) {
		require.NoError(t, s.Create(configMap("default", "a")))
		ctx, cancel := context.WithCancel(t.Context())
		client := kubernetes.NewForConfigOrDie(config(s))
		factory := informers.NewSharedInformerFactory(client, 0)
		maps := factory.Core().V1().ConfigMaps()
		var seen []string
		_, err := maps.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(o any) { seen = append(seen, "add "+o.(*corev1.ConfigMap).Name) },
			UpdateFunc: func(_, o any) {
				seen = append(seen, "update "+o.(*corev1.ConfigMap).Name)
			},
			DeleteFunc: func(o any) { seen = append(seen, "delete "+o.(*corev1.ConfigMap).Name) },
		})
		require.NoError(t, err)
		factory.Start(ctx.Done())
		factory.WaitForCacheSync(ctx.Done())

		_, err = client.CoreV1().ConfigMaps("default").Create(ctx, configMap("", "b"),
			metav1.CreateOptions{})
		require.NoError(t, err)
		_, err = client.CoreV1().ConfigMaps("default").Update(ctx, configMap("", "a", "k", "v"),
			metav1.UpdateOptions{})
		require.NoError(t, err)
		require.NoError(t,
			client.CoreV1().ConfigMaps("default").Delete(ctx, "b", metav1.DeleteOptions{}))
		synctest.Wait()
		assert.Equal(t, []string{"add a", "add b", "update a", "delete b"}, seen)
		assert.Empty(t, s.Requests(apitest.Match{Verb: "list"}), "the watch streamed the list")

		time.Sleep(4 * time.Hour)
		cancel()
		factory.Shutdown()
	})
}

func TestLeaseIsCreatedByUpdate(t *testing.T) {
	s := start(t, apitest.Options{Scheme: scheme.Scheme})
	leases := kubernetes.NewForConfigOrDie(config(s)).CoordinationV1().Leases("default")
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "l"}}
	made, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{})
	require.NoError(t, err)
	_, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
	assert.True(t, apierrors.IsInvalid(err), "an update of a lease needs a resourceVersion: %v",
		err)
	made, err = leases.Update(t.Context(), made, metav1.UpdateOptions{})
	require.NoError(t, err)
	require.NoError(t, leases.Delete(t.Context(), "l", metav1.DeleteOptions{}))
	_, err = leases.Update(t.Context(), made, metav1.UpdateOptions{})
	assert.True(t, apierrors.IsConflict(err), "a deleted lease does not come back: %v", err)
	assert.ErrorContains(t, err, "UID in object meta: ")
}
