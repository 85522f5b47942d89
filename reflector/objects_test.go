// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"errors"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

func node(s string) *v1.Node { return &v1.Node{ObjectMeta: pod(s).ObjectMeta} }

func nodeList(resourceVersion string, items ...string) *v1.NodeList {
	list := &v1.NodeList{ListMeta: podList(resourceVersion, "").ListMeta}
	for _, item := range items {
		list.Items = append(list.Items, *node(item))
	}
	return list
}

func added(s string) watch.Event    { return watch.Event{Type: watch.Added, Object: pod(s)} }
func modified(s string) watch.Event { return watch.Event{Type: watch.Modified, Object: pod(s)} }
func deleted(s string) watch.Event  { return watch.Event{Type: watch.Deleted, Object: pod(s)} }

// table is a list as kubectl asks for it.
func table() runtime.Object {
	return &unstructured.UnstructuredList{Object: map[string]any{
		"apiVersion": "meta.k8s.io/v1", "kind": "Table", "metadata": map[string]any{
			"resourceVersion": "5",
		},
	}}
}

// statusOf is how err looks inside an ERROR event.
func statusOf(err error) runtime.Object {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		panic(err)
	}
	s := status.Status()
	return &s
}
