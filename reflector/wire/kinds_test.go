// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"net/http"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"example.com/informerstack/internal/tools/answers"
)

// clientGo returns a typed client of client-go that is answered with body.
func clientGo(
	t *testing.T, c answers.Collection, contentType string, body []byte,
) *rest.Request {
	gv := c.Kind.GroupVersion()
	config := &rest.Config{
		Host: "http://server", APIPath: "/apis", QPS: -1,
		ContentConfig: rest.ContentConfig{
			GroupVersion: &gv, NegotiatedSerializer: scheme.Codecs.WithoutConversion(),
		},
	}
	answer := &answers.Server{ContentType: contentType, Answer: answers.With(http.StatusOK, body)}
	client, err := rest.RESTClientForConfigAndClient(config, &http.Client{Transport: answer})
	require.NoError(t, err)
	return client.Get().Resource("all")
}

// Random objects of every kind are read as by client-go's clients, in lists and watches, in both
// formats and as unstructured objects.
func TestEveryKind(t *testing.T) {
	all := answers.Collections()
	require.Greater(t, len(all), 100)
	for i, c := range all {
		list, items := c.Fuzzed(t, int64(i))
		newObject := func() runtime.Object { return answers.New(c.Of) }
		for _, contentType := range []string{answers.JSON, answers.Protobuf} {
			if contentType == answers.Protobuf && !newDecoder(newObject, Options{}).ReadsProtobuf {
				require.Equal(t, "Workload", c.Kind.Kind) // which contains groups of groups
				continue
			}
			body := answers.List(t, contentType, list)
			got, m, err := decodeAll(bytes.NewReader(body), newObject)
			require.NoError(t, err)
			whole, err := clientGo(t, c, contentType, body).Do(t.Context()).Get()
			require.NoError(t, err)
			want, err := meta.ExtractListWithAlloc(whole)
			require.NoError(t, err)
			require.True(t, reflect.DeepEqual(want, got), "%v %s", c.Kind, contentType)
			require.Equal(t, whole.(metav1.ListInterface).GetResourceVersion(), m.ResourceVersion)

			var events []watch.Event
			for _, obj := range items {
				events = append(events, watch.Event{Type: watch.Added, Object: obj})
			}
			body = answers.Events(t, contentType, events...)
			w, err := clientGo(t, c, contentType, body).Watch(t.Context())
			require.NoError(t, err)
			wantEvents := answers.Receive(w)
			gotEvents := receive(bytes.NewReader(body), newObject, Options{Kind: c.Kind})
			require.True(t, reflect.DeepEqual(wantEvents, gotEvents), "%v %s", c.Kind, contentType)
			require.Len(t, gotEvents, len(items))
		}
		body := answers.List(t, answers.JSON, list)
		got, _, err := decodeAll(bytes.NewReader(body), newUnstructured)
		require.NoError(t, err)
		whole, err := runtime.Decode(unstructured.UnstructuredJSONScheme, body)
		require.NoError(t, err)
		want, err := meta.ExtractListWithAlloc(whole)
		require.NoError(t, err)
		require.True(t, reflect.DeepEqual(want, got), "%v unstructured", c.Kind)
	}
}
