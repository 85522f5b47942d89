// SPDX-License-Identifier: Apache-2.0

package framework_test

import (
	"fmt"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/compat/cache"
	framework "example.com/informerstack/compat/cache/testing"
	"example.com/informerstack/internal/tools/narrate"
)

// A test changes the source, and its informer follows.
func Example() {
	source := framework.NewFakeControllerSource()
	defer source.Shutdown()
	pods := cache.NewSharedInformer(source, &corev1.Pod{}, 0)
	calls := make(chan string)
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { calls <- "add " + obj.(*corev1.Pod).Name },
		DeleteFunc: func(obj any) { calls <- "delete " + obj.(*corev1.Pod).Name },
	})
	if err != nil {
		fmt.Println(err)
	}
	stop := make(chan struct{})
	defer close(stop)
	go pods.Run(stop)

	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-0"}}
	source.Add(pod)
	fmt.Println(<-calls)
	source.Delete(pod)
	fmt.Println(<-calls)
	// Output:
	// add web-0
	// delete web-0
}

// With -v, selected examples print their output.
func TestMain(m *testing.M) { os.Exit(narrate.Run(m)) }
