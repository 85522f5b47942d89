// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	watchapi "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
	"k8s.io/client-go/util/retry"
)

// clientTests are operations of client-go's own clients that must work on a target.
var clientTests = []struct {
	name    string
	expires bool // calls Expire
	run     func(t *testing.T, target Target)
}{
	{"discovery", false, testDiscovery},
	{"typed", false, testTyped},
	{"dynamic", false, testDynamic},
	{"metadata", false, testMetadata},
	{"pager", false, testPager},
	{"too large", false, testTooLarge},
	{"informer", true, testInformer},
}

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// configMaps returns a typed client for a new namespace.
func configMaps(t *testing.T,
	target Target) (client typedcorev1.ConfigMapInterface, namespace string) {
	clientset, err := kubernetes.NewForConfig(target.Config)
	require.NoError(t, err)
	ns, err := clientset.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "clients-"}},
		metav1.CreateOptions{})
	require.NoError(t, err)
	return clientset.CoreV1().ConfigMaps(ns.Name), ns.Name
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name},
		Data: map[string]string{"k": "1"}}
}

// The first requests of kubectl: the list of resources, and their short names.
func testDiscovery(t *testing.T, target Target) {
	client, err := discovery.NewDiscoveryClientForConfig(target.Config)
	require.NoError(t, err)
	version, err := client.ServerVersion()
	require.NoError(t, err)
	assert.Equal(t, "1", version.Major)
	resources, err := client.ServerResourcesForGroupVersion("v1")
	require.NoError(t, err)
	found := map[string]metav1.APIResource{}
	for _, resource := range resources.APIResources {
		found[resource.Name] = resource
	}
	assert.Equal(t, "ConfigMap", found["configmaps"].Kind)
	assert.True(t, found["configmaps"].Namespaced)
	assert.Equal(t, []string{"cm"}, found["configmaps"].ShortNames)
	assert.Equal(t, "configmap", found["configmaps"].SingularName)
	assert.ElementsMatch(t,
		[]string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
		found["configmaps"].Verbs)
	assert.False(t, found["namespaces"].Namespaced)
	groups, err := restmapper.GetAPIGroupResources(client)
	require.NoError(t, err)
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	mapping, err := mapper.RESTMapping(schema.GroupKind{Group: "example.com", Kind: "Widget"})
	require.NoError(t, err)
	assert.Equal(t, widgets, mapping.Resource)
	_, err = client.ServerResourcesForGroupVersion("nonsense.example.com/v1")
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
}

// Errors are recognised by their reasons; a conflict is retried.
func testTyped(t *testing.T, target Target) {
	client, _ := configMaps(t, target)
	ctx := t.Context()
	stale, err := client.Create(ctx, configMap("a"), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = client.Create(ctx, configMap("a"), metav1.CreateOptions{})
	assert.True(t, apierrors.IsAlreadyExists(err), "%v", err)
	_, err = client.Get(ctx, "missing", metav1.GetOptions{})
	assert.True(t, apierrors.IsNotFound(err), "%v", err)
	_, err = client.Create(ctx, configMap("Bad_Name"), metav1.CreateOptions{})
	assert.True(t, apierrors.IsInvalid(err), "%v", err)
	_, err = client.Patch(ctx, "a", types.StrategicMergePatchType, []byte(`{"data":{"l":"1"}}`),
		metav1.PatchOptions{})
	require.NoError(t, err)
	_, err = client.Update(ctx, stale, metav1.UpdateOptions{})
	assert.True(t, apierrors.IsConflict(err), "%v", err)
	tries := 0
	require.NoError(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if tries++; tries > 1 {
			stale, err = client.Get(ctx, "a", metav1.GetOptions{})
			require.NoError(t, err)
		}
		stale.Data["k"] = "2"
		_, err := client.Update(ctx, stale, metav1.UpdateOptions{})
		return err
	}))
	assert.Equal(t, 2, tries)
	got, err := client.Get(ctx, "a", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"k": "2", "l": "1"}, got.Data)
	require.NoError(t, client.Delete(ctx, "a",
		metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(got.UID))}))
}

// A custom resource needs no Go type.
func testDynamic(t *testing.T, target Target) {
	_, ns := configMaps(t, target)
	dynamicClient, err := dynamic.NewForConfig(target.Config)
	require.NoError(t, err)
	client := dynamicClient.Resource(widgets).Namespace(ns)
	ctx := t.Context()
	widget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"generateName": "w-"}, "spec": map[string]any{"size": int64(1)},
	}}
	created, err := client.Create(ctx, widget, metav1.CreateOptions{})
	require.NoError(t, err)
	events, err := client.Watch(ctx,
		metav1.ListOptions{ResourceVersion: created.GetResourceVersion()})
	require.NoError(t, err)
	defer events.Stop()
	require.NoError(t, unstructured.SetNestedField(created.Object, true, "status", "ready"))
	_, err = client.UpdateStatus(ctx, created, metav1.UpdateOptions{})
	require.NoError(t, err)
	list, err := client.List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	assert.Equal(t, map[string]any{"ready": true}, list.Items[0].Object["status"])
	require.NoError(t, client.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}))
	for _, want := range []watchapi.EventType{watchapi.Modified, watchapi.Deleted} {
		event := <-events.ResultChan()
		assert.Equal(t, want, event.Type)
		assert.Equal(t, "Widget", event.Object.(*unstructured.Unstructured).GetKind())
	}
}

// Metadata of any kind, also without a Go type.
func testMetadata(t *testing.T, target Target) {
	typed, ns := configMaps(t, target)
	client, err := metadata.NewForConfig(target.Config)
	require.NoError(t, err)
	ctx := t.Context()
	_, err = typed.Create(ctx, configMap("a"), metav1.CreateOptions{})
	require.NoError(t, err)
	resource := client.Resource(corev1.SchemeGroupVersion.WithResource("configmaps")).Namespace(ns)
	list, err := resource.List(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.Items, 1)
	assert.Equal(t, "a", list.Items[0].Name)
	events, err := resource.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	require.NoError(t, err)
	defer events.Stop()
	require.NoError(t, resource.Delete(ctx, "a", metav1.DeleteOptions{}))
	event := <-events.ResultChan()
	assert.Equal(t, watchapi.Deleted, event.Type)
	assert.IsType(t, &metav1.PartialObjectMetadata{}, event.Object)
}

// Pages add up to the whole, each object once and in order.
func testPager(t *testing.T, target Target) {
	client, _ := configMaps(t, target)
	var want, got []string
	for i := range 7 {
		name := fmt.Sprint("page-", i)
		want = append(want, name)
		_, err := client.Create(t.Context(), configMap(name), metav1.CreateOptions{})
		require.NoError(t, err)
	}
	pages := 0
	p := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		pages++
		return client.List(ctx, options)
	})
	p.PageSize = 3
	require.NoError(t,
		p.EachListItem(t.Context(), metav1.ListOptions{}, func(obj runtime.Object) error {
			got = append(got, obj.(*corev1.ConfigMap).Name)
			return nil
		}))
	assert.Equal(t, want, got)
	assert.Equal(t, 3, pages)
}

// A request of three megabytes is too large.
func testTooLarge(t *testing.T, target Target) {
	client, _ := configMaps(t, target)
	large := configMap("large")
	large.Data["k"] = strings.Repeat("x", 3<<20)
	_, err := client.Create(t.Context(), large, metav1.CreateOptions{})
	assert.True(t, apierrors.IsRequestEntityTooLargeError(err), "%v", err)
	assert.ErrorContains(t, err, "Request entity too large: limit is 3145728")
}

// An informer stays up to date, even if the server compacts its history while the informer watches.
func testInformer(t *testing.T, target Target) {
	client, ns := configMaps(t, target)
	_, err := client.Create(t.Context(), configMap("before"), metav1.CreateOptions{})
	require.NoError(t, err)
	clientset, err := kubernetes.NewForConfig(target.Config)
	require.NoError(t, err)
	factory := informers.NewSharedInformerFactoryWithOptions(clientset, 0,
		informers.WithNamespace(ns))
	informer := factory.Core().V1().ConfigMaps().Informer()
	factory.Start(t.Context().Done())
	require.True(t, cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced))
	holds := func(names ...string) {
		t.Helper()
		want := make([]string, len(names))
		for i, name := range names {
			want[i] = ns + "/" + name
		}
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			assert.ElementsMatch(t, want, informer.GetStore().ListKeys())
		}, patience, 10*time.Millisecond)
	}
	holds("before")
	_, err = client.Create(t.Context(), configMap("during"), metav1.CreateOptions{})
	require.NoError(t, err)
	holds("before", "during")
	target.Expire(t)
	require.NoError(t, client.Delete(t.Context(), "before", metav1.DeleteOptions{}))
	_, err = client.Create(t.Context(), configMap("after"), metav1.CreateOptions{})
	require.NoError(t, err)
	holds("during", "after")
}
