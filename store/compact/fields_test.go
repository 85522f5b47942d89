// SPDX-License-Identifier: Apache-2.0

package compact

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
