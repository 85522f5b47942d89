// SPDX-License-Identifier: Apache-2.0

package informer_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/informer"
	"example.com/informerstack/store"
)

// cluster is a ListerWatcher that lists two pods and then reports what is sent to changes.
type cluster struct{ changes *watch.RaceFreeFakeWatcher }

func newCluster() cluster { return cluster{watch.NewRaceFreeFake()} }

func (c cluster) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return &corev1.PodList{
		ListMeta: metav1.ListMeta{ResourceVersion: "2"},
		Items:    []corev1.Pod{*pod("web-0", "1"), *pod("web-1", "2")},
	}, nil
}

func (c cluster) WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return c.changes, nil
}

func (c cluster) IsWatchListSemanticsUnSupported() bool { return true }

func pod(name, resourceVersion string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, ResourceVersion: resourceVersion}}
}

// An informer keeps a copy of a collection and tells handlers what changes.
func Example() {
	lw := newCluster()
	pods := informer.NewSharedIndexInformer(lw, &corev1.Pod{}, informer.SharedIndexInformerOptions{
		Indexers: store.Indexers{store.NamespaceIndex: store.MetaNamespaceIndexFunc},
	})
	told := make(chan string)
	handle, err := pods.AddEventHandler(informer.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			told <- fmt.Sprintf("add %s, in the initial list: %t", obj.(*corev1.Pod).Name, isInInitialList)
		},
		DeleteFunc: func(obj any) {
			key, _ := store.DeletionHandlingMetaNamespaceKeyFunc(obj)
			told <- "delete " + key
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		pods.Run(ctx)
	}()

	fmt.Println(<-told)
	fmt.Println(<-told)
	informer.WaitFor(ctx, "", handle.HasSyncedChecker())
	lw.changes.Delete(pod("web-1", "3"))
	fmt.Println(<-told)
	left, _ := pods.GetIndexer().ByIndex(store.NamespaceIndex, "default")
	fmt.Println(len(left), "pod left")
	cancel()
	<-stopped
	// Output:
	// add web-0, in the initial list: true
	// add web-1, in the initial list: true
	// delete default/web-1
	// 1 pod left
}

// A typed informer leaves no type assertion to its user, not even for a tombstone.
func ExampleNewTypedSharedIndexInformer() {
	lw := newCluster()
	pods := informer.NewTypedSharedIndexInformer[*corev1.Pod](
		informer.NewSharedIndexInformer(lw, &corev1.Pod{}, informer.SharedIndexInformerOptions{}))
	told := make(chan string, 3)
	_, err := pods.AddTypedEventHandler(informer.TypedResourceEventHandlerFuncs[*corev1.Pod]{
		AddFunc:    func(pod *corev1.Pod) { told <- "add " + pod.Name },
		DeleteFunc: func(pod informer.DeletedObject[*corev1.Pod]) { told <- "delete " + pod.GetName() },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go pods.Run(ctx)
	lw.changes.Delete(pod("web-1", "3"))
	for range 3 {
		fmt.Println(<-told)
	}
	// Output:
	// add web-0
	// add web-1
	// delete web-1
}

// A cache that does not fill says why.
func ExampleWaitForSync() {
	pods := informer.NewSharedIndexInformer(forbidden{}, &corev1.Pod{}, informer.SharedIndexInformerOptions{})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	go pods.Run(ctx)
	fmt.Println(informer.WaitForSync(ctx, pods))
	// Output:
	// failed to sync all caches: SharedIndexInformer *v1.Pod (failed to list *v1.Pod: pods is forbidden): context deadline exceeded
}

type forbidden struct{ cluster }

func (forbidden) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return nil, errors.New("pods is forbidden")
}
