// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"context"
	goruntime "runtime"
	"testing"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// kubernetes/kubernetes#113362: an object that lived on kept the array of the whole LIST in memory.
func TestRegress113362_OneObjectDoesNotKeepItsList(t *testing.T) {
	list := &v1.PodList{
		ListMeta: metav1.ListMeta{ResourceVersion: "1"},
		Items:    make([]v1.Pod, 1000),
	}
	array := weak.Make(&list.Items[0])
	lw := &ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			answer := list
			list = nil
			return answer, nil
		},
	}
	got, err := New(lw, &v1.Pod{}, nil, Options{}).fetch(t.Context(), "0", 0)
	require.NoError(t, err)
	require.Len(t, got.items, 1000)
	survivor := got.items[999]
	got = listed{}
	goruntime.GC()
	goruntime.GC()
	assert.True(t, array.Value() == nil, "the array of the list is reachable")
	goruntime.KeepAlive(survivor)
}
