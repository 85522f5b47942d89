// SPDX-License-Identifier: Apache-2.0

package compact_test

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/store"
	"example.com/informerstack/store/compact"
)

func webPod() *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", ResourceVersion: "7"},
		Spec: corev1.PodSpec{
			NodeName:   "node-1",
			Containers: []corev1.Container{{Image: "web:1"}, {Image: "proxy:3"}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning},
	}
}

// Readers of a compressed store get whole objects. For an informer, set informer.Options.Form.
func ExampleCompressed() {
	pods := compact.New(compact.Compressed(), store.Options{})
	if err := pods.Add(webPod()); err != nil {
		panic(err)
	}
	obj, _, _ := pods.GetByKey("default/web")
	fmt.Println(obj.(*corev1.Pod).Spec.Containers[1].Image)
	// Output: proxy:3
}

// A field that is not kept is an error, not a zero value.
func ExampleFieldsOf() {
	form := compact.FieldsOf[*corev1.Pod]("spec.nodeName", "spec.containers[*].image")
	pods := compact.New(form, store.Options{})
	if err := pods.Add(webPod()); err != nil {
		panic(err)
	}
	obj, _, _ := pods.GetByKey("default/web")
	fields := obj.(*compact.Fields)
	fmt.Println(fields)

	images, err := compact.Get[[]string](fields, "spec.containers[*].image")
	fmt.Println(images, err)

	_, err = compact.Get[string](fields, "status.phase")
	fmt.Println(err)
	fmt.Println(errors.As(err, new(*compact.NotKeptError)))
	// Output:
	// default/web@7 with spec.nodeName, spec.containers[*].image
	// [web:1 proxy:3] <nil>
	// field status.phase of *v1.Pod is not kept, only spec.nodeName, spec.containers[*].image
	// true
}

type placement struct {
	compact.Meta
	Node string
}

// An index is computed from the whole object, before the summary replaces it.
func ExampleSummary() {
	form := compact.Summary(func(pod *corev1.Pod) *placement {
		return &placement{Node: pod.Spec.NodeName}
	})
	pods := compact.New(form, store.Options{Indexers: store.Indexers{
		"phase": func(obj any) ([]string, error) {
			return []string{string(obj.(*corev1.Pod).Status.Phase)}, nil
		},
	}})
	if err := pods.Add(webPod()); err != nil {
		panic(err)
	}
	running, err := pods.ByIndex("phase", "Running")
	for _, obj := range running {
		p := obj.(*placement)
		fmt.Println(p.Name, "is on", p.Node, err)
	}
	// Output: web is on node-1 <nil>
}
