// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

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

func TestGrowth_StrategicPatchOfADeepObject(t *testing.T) {
	measure.Growth(t, 500, func(n int) {
		var doc, patch map[string]any
		require.NoError(t, utiljson.Unmarshal(deep(n, "1"), &doc))
		require.NoError(t, utiljson.Unmarshal(deep(n, "2"), &patch))
		_, err := strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(
			doc, patch, mergeKeys{"Pod"})
		require.NoError(t, err)
	})
}
