// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

func node(s string) *v1.Node { return &v1.Node{ObjectMeta: pod(s).ObjectMeta} }

// table is a list as kubectl asks for it.
func table() runtime.Object {
	return &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "meta.k8s.io/v1", "kind": "Table", "metadata": map[string]any{"resourceVersion": "5"},
	}}
}
