// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"example.com/informerstack/internal/tools/measure"
)

// deep returns n objects in each other.
func deep(n int, leaf string) []byte {
	return []byte(strings.Repeat(`{"x":`, n) + leaf + strings.Repeat("}", n))
}

// A patch costs linear time in the depth of the object.
func TestGrowth_MergePatchOfADeepObject(t *testing.T) {
	measure.Growth(t, 1000, func(n int) {
		after, err := mergePatch(deep(n, "1"), deep(n, "2"))
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
