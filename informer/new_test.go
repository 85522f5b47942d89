// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/testserver"
	"example.com/informerstack/store"
)

type object interface {
	informer.Object
	runtime.Object
	metav1.Object
}

func configMap(namespace, name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		Data:       map[string]string{"k": "v"},
	}
}

// Objects can be of a Go type, unstructured, or metadata alone, as the client decodes them.
func TestNew_Forms(t *testing.T) {
	t.Run("typed", func(t *testing.T) {
		testNew[*corev1.ConfigMap](t, func(config *rest.Config) rest.Interface {
			return kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient()
		}, func(cm *corev1.ConfigMap) bool { return cm.Data["k"] == "v" })
	})
	t.Run("unstructured", func(t *testing.T) {
		testNew[*unstructured.Unstructured](t, func(config *rest.Config) rest.Interface {
			return clientFor(dynamic.ConfigFor(config))
		}, func(u *unstructured.Unstructured) bool { return u.Object["data"] != nil })
	})
	t.Run("metadata", func(t *testing.T) {
		testNew[*metav1.PartialObjectMetadata](t, func(config *rest.Config) rest.Interface {
			return clientFor(metadata.ConfigFor(config))
		}, func(m *metav1.PartialObjectMetadata) bool { return m.UID != "" })
	})
	t.Run("metadata, from a server that sends whole objects", func(t *testing.T) {
		testNew[*metav1.PartialObjectMetadata](t, func(config *rest.Config) rest.Interface {
			config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return plainJSON{rt} })
			return clientFor(metadata.ConfigFor(config))
		}, func(m *metav1.PartialObjectMetadata) bool { return m.UID != "" })
	})
}

// plainJSON requests whole objects in JSON, whatever a client prefers.
type plainJSON struct{ http.RoundTripper }

func (p plainJSON) RoundTrip(request *http.Request) (*http.Response, error) {
	request.Header.Set("Accept", "application/json")
	return p.RoundTripper.RoundTrip(request)
}

func clientFor(config *rest.Config) rest.Interface {
	config.GroupVersion, config.APIPath = &schema.GroupVersion{Version: "v1"}, "/api"
	client, err := rest.RESTClientFor(config)
	if err != nil {
		panic(err)
	}
	return client
}

func testNew[T object](
	t *testing.T, newClient func(*rest.Config) rest.Interface, whole func(obj T) bool,
) {
	synctest.Test(t, func(t *testing.T) {
		server := testserver.New(t, apitest.Options{})
		mine := map[string]string{"mine": "yes"}
		for _, cm := range []*corev1.ConfigMap{
			configMap("ns", "a", mine), configMap("ns", "b", nil), configMap("other", "c", mine),
			configMap("ns", "d", mine),
		} {
			require.NoError(t, server.Create(cm))
		}
		maps := informer.New[T](newClient(server.Config()), "configmaps", informer.Options{
			Namespace: "ns", LabelSelector: "mine=yes", FieldSelector: "metadata.name!=d",
			Indexers: store.TypedIndexersToIndexers(store.TypedIndexers[T]{
				"name": func(obj T) ([]string, error) { return []string{obj.GetName()}, nil },
			}),
		})
		var calls []string
		handle, err := maps.AddTypedEventHandler(informer.TypedResourceEventHandlerFuncs[T]{
			AddFunc:    func(obj T) { calls = append(calls, "add "+obj.GetName()) },
			UpdateFunc: func(_, obj T) { calls = append(calls, "update "+obj.GetName()) },
			DeleteFunc: func(d informer.DeletedObject[T]) {
				calls = append(calls, "delete "+d.GetKey())
			},
		}, informer.HandlerOptions{})
		require.NoError(t, err)
		go maps.Run(t.Context())
		require.NoError(t, informer.WaitForSync(t.Context(), maps, handle))

		listed, err := maps.Lister().ByNamespace("ns").List(labels.Everything())
		require.NoError(t, err)
		require.Len(t, listed, 1)
		require.True(t, whole(listed[0]), "%v", listed[0])
		byName, err := maps.Indexer().ByTypedIndex("name", "a")
		require.NoError(t, err)
		require.Equal(t, listed, byName)
		_, err = maps.Lister().ByNamespace("ns").Get("b")
		require.EqualError(t, err, `configmaps "b" not found`)

		require.NoError(t, server.Create(configMap("ns", "e", mine)))
		synctest.Wait()
		require.NoError(t, server.Delete(configMap("ns", "a", nil)))
		synctest.Wait()
		require.Equal(t, []string{"add a", "add e", "delete ns/a"}, calls)
		require.Equal(t, 1, maps.Status().Objects)
	})
}
