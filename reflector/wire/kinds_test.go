// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 the replacement of Raw is newer than the oldest client-go of this module

package wire

import (
	"bytes"
	"io"
	"math/rand"
	"net/http"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/apitesting/fuzzer"
	"k8s.io/apimachinery/pkg/api/meta"
	metafuzzer "k8s.io/apimachinery/pkg/apis/meta/fuzzer"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// collection is a kind of objects that a server lists.
type collection struct {
	gvk      schema.GroupVersionKind
	of, list reflect.Type
}

func newOf(t reflect.Type) runtime.Object { return reflect.New(t).Interface().(runtime.Object) }

// collections are all kinds of k8s.io/api that have lists.
func collections() (all []collection) {
	types := scheme.Scheme.AllKnownTypes()
	for gvk, of := range types {
		list, ok := types[gvk.GroupVersion().WithKind(gvk.Kind+"List")]
		if _, isObject := newOf(of).(metav1.Object); ok && isObject {
			all = append(all, collection{gvk, of, list})
		}
	}
	return all
}

// fuzzed returns a list of random objects, and the objects.
func (c collection) fuzzed(t *testing.T, seed int64) (list runtime.Object, items []runtime.Object) {
	fill := fuzzer.FuzzerFor(metafuzzer.Funcs, rand.NewSource(seed), scheme.Codecs)
	for range 3 {
		obj := newOf(c.of)
		fill.Fill(obj)
		managed := []metav1.ManagedFieldsEntry{{
			Manager: "m", FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:spec":{}}`)},
		}}
		obj.(metav1.Object).SetManagedFields(managed)
		items = append(items, obj)
	}
	list = newOf(c.list)
	require.NoError(t, meta.SetList(list, items))
	list.(metav1.ListInterface).SetResourceVersion("5")
	list.GetObjectKind().SetGroupVersionKind(c.gvk.GroupVersion().WithKind(c.gvk.Kind + "List"))
	for _, obj := range items {
		obj.GetObjectKind().SetGroupVersionKind(c.gvk)
	}
	return list, items
}

// clientGo returns a typed client of client-go that is answered with body.
func (c collection) clientGo(t *testing.T, contentType string, body []byte) *rest.Request {
	gv := c.gvk.GroupVersion()
	config := &rest.Config{
		Host: "http://server", APIPath: "/apis", QPS: -1,
		ContentConfig: rest.ContentConfig{
			GroupVersion: &gv, NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
		},
	}
	answer := &roundTripper{contentType: contentType, answer: answerWith(http.StatusOK, body)}
	client, err := rest.RESTClientForConfigAndClient(config, &http.Client{Transport: answer})
	require.NoError(t, err)
	return client.Get().Resource("all")
}

// Random objects of every kind are read as by client-go's clients, in lists and watches, in both
// formats and as unstructured objects.
func TestEveryKind(t *testing.T) {
	all := collections()
	require.Greater(t, len(all), 100)
	for i, c := range all {
		list, items := c.fuzzed(t, int64(i))
		newObject := func() runtime.Object { return newOf(c.of) }
		for _, contentType := range []string{jsonStream, protobufStream} {
			if contentType == protobufStream && !readsProtobuf(newObject()) {
				require.Equal(t, "Workload", c.gvk.Kind) // which contains groups of groups
				continue
			}
			body := encodeList(t, contentType, list)
			got, m, err := decodeAll(bytes.NewReader(body), newObject)
			require.NoError(t, err)
			whole, err := c.clientGo(t, contentType, body).Do(t.Context()).Get()
			require.NoError(t, err)
			want, err := meta.ExtractListWithAlloc(whole)
			require.NoError(t, err)
			require.True(t, reflect.DeepEqual(want, got), "%v %s", c.gvk, contentType)
			require.Equal(t, whole.(metav1.ListInterface).GetResourceVersion(), m.ResourceVersion)

			var events []watch.Event
			for _, obj := range items {
				events = append(events, watch.Event{Type: watch.Added, Object: obj})
			}
			body = encodeEvents(t, contentType, events...)
			w, err := c.clientGo(t, contentType, body).Watch(t.Context())
			require.NoError(t, err)
			wantEvents := receiveAll(w)
			gotEvents := receiveAll(ReadWatch(io.NopCloser(bytes.NewReader(body)), newObject,
				Options{Kind: c.gvk}))
			require.True(t, reflect.DeepEqual(wantEvents, gotEvents), "%v %s", c.gvk, contentType)
			require.Len(t, gotEvents, len(items))
		}
		body := encodeList(t, jsonStream, list)
		got, _, err := decodeAll(bytes.NewReader(body), newUnstructured)
		require.NoError(t, err)
		whole, err := runtime.Decode(unstructured.UnstructuredJSONScheme, body)
		require.NoError(t, err)
		want, err := meta.ExtractListWithAlloc(whole)
		require.NoError(t, err)
		require.True(t, reflect.DeepEqual(want, got), "%v unstructured", c.gvk)
	}
}
