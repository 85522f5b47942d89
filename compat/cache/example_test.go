// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"fmt"
	"os"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/compat/cache"
	framework "example.com/informerstack/compat/cache/testing"
	"example.com/informerstack/internal/tools/narrate"
)

// Code as it is written for client-go: but for its import lines, nothing was changed.
func Example() {
	source := framework.NewFakeControllerSource()
	source.Add(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}})

	informer := cache.NewSharedIndexInformer(source, &v1.Pod{}, 0, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
	})
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			key, _ := cache.MetaNamespaceKeyFunc(obj)
			fmt.Println("added", key)
		},
	})
	if err != nil {
		panic(err)
	}
	stopCh, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		informer.Run(stopCh)
	}()
	cache.WaitForCacheSync(stopCh, registration.HasSynced)
	pods, err := informer.GetIndexer().ByIndex(cache.NamespaceIndex, "default")
	fmt.Println(len(pods), "pod in the namespace,", err)
	close(stopCh)
	<-done
	// Output:
	// added default/web
	// 1 pod in the namespace, <nil>
}

// A transformer drops fields that no reader needs before they cost memory.
func ExampleWithTransformer() {
	dropFields := cache.WithTransformer(func(obj any) (any, error) {
		pod := obj.(*v1.Pod)
		pod.ManagedFields = nil
		return pod, nil
	})
	pods := cache.NewStore(cache.MetaNamespaceKeyFunc, dropFields)
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}}
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	_ = pods.Add(pod)
	cached, _, _ := pods.Get(pod)
	fmt.Println(cached.(*v1.Pod).ManagedFields)
	// Output: []
}

// With -v, selected examples print their output.
func TestMain(m *testing.M) { os.Exit(narrate.Run(m)) }
