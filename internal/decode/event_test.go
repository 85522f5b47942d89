// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/informerstack/internal/tools/answers"
)

func TestTypeMeta(t *testing.T) {
	last := metav1.TypeMeta{APIVersion: "v1", Kind: "Event"}
	for _, want := range []metav1.TypeMeta{
		last, {APIVersion: "events.k8s.io/v1", Kind: "Event"}, {APIVersion: "v1", Kind: "Pod"},
	} {
		raw := answers.Marshal(t, &runtime.TypeMeta{APIVersion: want.APIVersion, Kind: want.Kind})
		of, isUsual, err := TypeMeta(raw, last)
		require.NoError(t, err)
		require.True(t, isUsual)
		require.Equal(t, want, of)
	}
}
