// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/internal/tools/measure"
)

// randomValue returns a JSON value with objects of up to three fields.
func randomValue(random *rand.Rand, depth int) any {
	switch kind := random.IntN(8); {
	case kind < 4 && depth > 0:
		return randomObject(random, depth-1)
	case kind == 4 && depth > 0:
		return []any{randomValue(random, depth-1), randomValue(random, depth-1)}
	case kind == 5:
		return nil
	case kind == 6:
		return "text"
	}
	return random.IntN(3)
}

func randomObject(random *rand.Rand, depth int) map[string]any {
	object := map[string]any{}
	for range random.IntN(4) {
		object[string(rune('a'+random.IntN(4)))] = randomValue(random, depth)
	}
	return object
}

// A merge patch has the result of the library that the real server uses.
func TestModel_MergePatch(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		doc, err := json.Marshal(randomObject(random, 4))
		require.NoError(t, err)
		patch, err := json.Marshal(randomObject(random, 4))
		require.NoError(t, err)
		want, err := jsonpatch.MergePatch(doc, patch)
		require.NoError(t, err)
		got, err := Merge(doc, patch)
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got), "%s\n%s", doc, patch)
	}
}

// deep returns n objects in each other.
func deep(n int, leaf string) []byte {
	return []byte(strings.Repeat(`{"x":`, n) + leaf + strings.Repeat("}", n))
}

// A patch costs linear time in the depth of the object.
func TestGrowth_MergePatchOfADeepObject(t *testing.T) {
	measure.Growth(t, 1000, func(n int) {
		after, err := Merge(deep(n, "1"), deep(n, "2"))
		require.NoError(t, err)
		require.Equal(t, deep(n, "2"), after)
	})
}

var definition = schema.GroupVersionKind{
	Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition",
}

func TestGrowth_StrategicPatchOfADeepObject(t *testing.T) {
	measure.Growth(t, 500, func(n int) {
		after, err := Strategic(deep(n, "1"), deep(n, "2"), definition, nil)
		require.NoError(t, err)
		require.Equal(t, deep(n, "2"), after)
	})
}

// Lists of a built-in kind are merged by its Go type, even without a scheme.
func TestStrategic_MergesLists(t *testing.T) {
	doc := `{"metadata":{"finalizers":["a/b"]},"spec":{"conditions":[{"type":"x"}],
		"containers":[{"name":"a","image":"i"},{"name":"b"}]}}`
	patch := `{"metadata":{"finalizers":["c/d"],"$deleteFromPrimitiveList/finalizers":["a/b"]},
		"spec":{"conditions":[{"type":"y"}],
			"containers":[{"name":"b","$patch":"delete"},{"name":"a","args":["x"]}]}}`
	pod := schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	_, err := Strategic([]byte(doc), []byte(patch), pod, nil)
	require.Error(t, err, "a pod has no conditions in its spec")
	doc = strings.ReplaceAll(doc, "conditions", "tolerations")
	patch = strings.ReplaceAll(patch, "conditions", "tolerations")
	after, err := Strategic([]byte(doc), []byte(patch), pod, nil)
	require.NoError(t, err)
	require.JSONEq(t, `{"metadata":{"finalizers":["c/d"]},"spec":{"tolerations":[{"type":"y"}],
		"containers":[{"name":"a","image":"i","args":["x"]}]}}`, string(after))
	patch = strings.ReplaceAll(patch, `{"name":"b","$patch":"delete"},`, "")
	after, err = Strategic([]byte(doc), []byte(patch), definition, nil)
	require.NoError(t, err)
	require.JSONEq(t, `{"metadata":{"finalizers":["c/d"]},"spec":{"tolerations":[{"type":"y"}],
		"containers":[{"name":"a","args":["x"]}]}}`, string(after))
}
