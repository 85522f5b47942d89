// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/store"
)

// gadget has fields whose JSON is not that of a plain struct.
type gadget struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	*Placement        `json:",inline"`
	Title             string           `json:"name"`
	Spec              wrapped          `json:"spec"`
	Routes            []wrapped        `json:"routes"`
	Ports             map[int32]string `json:"ports"`
}

type Placement struct {
	Node   string `json:"node"`
	Hidden string `json:"name"`
}

// wrapped has its JSON from a method of the pointer, as generated types have.
type wrapped struct{ text string }

func (w *wrapped) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]string{"of": w.text})
}

// A field has the JSON that it has in the JSON of the object.
func TestFieldsOf_FieldsAreThoseOfJSON(t *testing.T) {
	g := &gadget{ObjectMeta: metav1.ObjectMeta{Name: "g-1"}, Title: "Ada", Spec: wrapped{"x"},
		Routes: []wrapped{{"y"}}, Placement: &Placement{"n", "h"}}
	form := FieldsOf[*gadget]("name", "node", "spec", "routes", "routes[*]", "metadata.name")
	f := only(t, form, g).(*Fields)
	for path, want := range map[string]string{
		"name": `"Ada"`, "node": `"n"`, "spec": `{"of":"x"}`, "routes": `[{"of":"y"}]`,
		"routes[*]": `[{"of":"y"}]`, "metadata.name": `"g-1"`,
	} {
		got, err := Get[json.RawMessage](f, path)
		require.NoError(t, err)
		assert.Equal(t, want, string(got), path)
	}
	g.Placement = nil
	requireField(t, "", only(t, form, g).(*Fields), "node")
}

// The sizes of a packed object are those of what it holds encoded. The rest is a Go value.
func TestSizes(t *testing.T) {
	const wordBytes = 8
	var held *packed
	sizes := func(form Form, obj any) (encoded map[string]int64, rest any) {
		s := New(form, store.Options{})
		require.NoError(t, s.Add(obj))
		held = s.Packed().List()[0].(*packed)
		return held.Sizes()
	}
	meta := &Meta{"ns", "a", "", "1"}
	pod := labeledPod()

	encoded, rest := sizes(FieldsOf[*corev1.Pod]("spec.nodeName", "metadata.labels"), pod)
	assert.Equal(t, map[string]int64{".": 3 * wordBytes, ".spec.nodeName": int64(len(`"n"`)),
		".metadata.labels": int64(len(`{"app":"x"}`))}, encoded)
	assert.Equal(t, meta, rest)
	encoded, _ = sizes(FieldsOf[*corev1.Pod]("spec.nodeName", ".spec.nodeName"), pod)
	assert.Equal(t, int64(2*len(`"n"`)), encoded[".spec.nodeName"])
	encoded, _ = sizes(FieldsOf[*corev1.Pod](), pod)
	assert.Equal(t, map[string]int64{".": 3 * wordBytes}, encoded)

	encoded, rest = sizes(Compressed(), pod)
	data := int64(cap(held.kept.(*compressedObject).data))
	assert.Equal(t, map[string]int64{".": 4*wordBytes + data}, encoded)
	assert.Equal(t, meta, rest)

	odd := &lossy{widget: widget{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}
	encoded, rest = sizes(Compressed(), odd)
	assert.Equal(t, map[string]int64{".": 10 * wordBytes}, encoded)
	assert.Same(t, odd, rest)

	encoded, rest = sizes(Summary(summarize), pod)
	assert.Empty(t, encoded)
	assert.Equal(t, &podSummary{Meta: *meta, Node: "n"}, rest)
}
