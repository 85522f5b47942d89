// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/informerstack/informer"
)

// valued returns an object with a value in each place that objects have.
func valued(kind, version, canary string) *unstructured.Unstructured {
	applied := fmt.Sprintf(`{"data":{"key-%s":"value-%[1]s"}}`, canary)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": kind,
		"metadata": map[string]any{
			"namespace": "default", "name": "a", "resourceVersion": version,
			"annotations": map[string]any{
				corev1.LastAppliedConfigAnnotation: applied,
				"annotation-" + canary:             "value-" + canary,
			},
			"labels": map[string]any{"label-" + canary: "value-" + canary},
		},
		"data":       map[string]any{"key-" + canary: "value-" + canary},
		"stringData": map[string]any{"key-" + canary: "value-" + canary},
	}}
}

// No value of an object is shown or recorded, and of Secrets not even the names in data, labels and
// annotations: in pages, answers, reasons and findings, for all forms of objects.
func TestPage_ShowsNoValues(t *testing.T) {
	typed := func(into runtime.Object) func(string, string, string) metav1.Object {
		return func(kind, version, canary string) metav1.Object {
			object := into.DeepCopyObject()
			u := valued(kind, version, canary)
			delete(u.Object, "stringData")
			delete(u.Object, "data")
			require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object,
				object))
			switch object := object.(type) {
			case *corev1.Secret:
				object.Kind = "" // as a typed client decodes it
				object.Data = map[string][]byte{"key-" + canary: []byte("value-" + canary)}
			case *corev1.ConfigMap:
				object.Data = map[string]string{"key-" + canary: "value-" + canary}
			}
			return object.(metav1.Object)
		}
	}
	untyped := func(kind, version, canary string) metav1.Object {
		return valued(kind, version, canary)
	}
	for name, test := range map[string]struct {
		kind   string
		object func(kind, version, canary string) metav1.Object
		hidden []string
	}{
		"a Secret of a Go type":      {"Secret", typed(&corev1.Secret{}), []string{"canary"}},
		"a Secret without a Go type": {"Secret", untyped, []string{"canary"}},
		"metadata of a Secret": {"Secret", typed(&metav1.PartialObjectMetadata{}),
			[]string{"canary"}},
		"a ConfigMap of a Go type": {"ConfigMap", typed(&corev1.ConfigMap{}),
			[]string{"value-"}},
		"a ConfigMap without a Go type": {"ConfigMap", untyped, []string{"value-"}},
	} {
		t.Run(name, func(t *testing.T) {
			page := record(t)
			queue := page.newQueue("work")
			s := newStored(t, 0, nil)
			page.AddInformer("", s)
			handler := page.newHandler("handler", informer.ResourceEventHandlerFuncs{
				AddFunc:    func(any) { queue.Add("default/a") },
				UpdateFunc: func(_, obj any) { queue.Add("default/a") },
			})
			object := test.object(test.kind, "1", "canary1")
			require.NoError(t, s.Add(object))
			handler.OnAdd(object, true)
			for n := range 3 {
				next := test.object(test.kind, fmt.Sprint(n+2), fmt.Sprint("canary", n))
				require.NoError(t, s.Add(next))
				handler.OnUpdate(object, next)
				object = next
				key, _ := queue.Get()
				object.SetAnnotations(map[string]string{"annotation-canary": "value-canary"})
				queue.AddRateLimited(key)
				queue.Done(key)
			}
			shown := ""
			for _, target := range []string{"", "?format=json", "?why=default/a",
				"?why=default/a&format=json"} {
				code, text := ask(page, "/debug/informers"+target)
				require.Equal(t, http.StatusOK, code)
				shown += text
			}
			assert.Contains(t, shown, "from resourceVersion 3 to 4")
			assert.Contains(t, shown, "was changed by a reconcile")
			assert.Contains(t, shown, `"largestFields"`)
			for _, hidden := range test.hidden {
				assert.NotContains(t, shown, hidden)
			}
		})
	}
}
