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

// cluster is a ListerWatcher that lists two pods and then sends the events of changes.
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
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, ResourceVersion: resourceVersion,
	}}
}

// An informer keeps a copy of a collection and notifies handlers of changes.
func Example() {
	lw := newCluster()
	pods := informer.NewSharedIndexInformer(lw, &corev1.Pod{}, informer.Options{
		Indexers: store.Indexers{store.NamespaceIndex: store.MetaNamespaceIndexFunc},
	})
	calls := make(chan string)
	handle, err := pods.AddEventHandler(informer.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, isInInitialList bool) {
			calls <- fmt.Sprintf("add %s, in the initial list: %t", obj.(*corev1.Pod).Name,
				isInInitialList)
		},
		DeleteFunc: func(obj any) {
			key, _ := store.DeletionHandlingMetaNamespaceKeyFunc(obj)
			calls <- "delete " + key
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

	fmt.Println(<-calls)
	fmt.Println(<-calls)
	if err := informer.WaitForSync(ctx, handle); err != nil {
		fmt.Println(err)
	}
	lw.changes.Delete(pod("web-1", "3"))
	fmt.Println(<-calls)
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

// A typed handler needs no type assertions, also not for a tombstone.
func ExampleNewTyped() {
	lw := newCluster()
	pods := informer.NewTyped[*corev1.Pod](
		informer.NewSharedIndexInformer(lw, &corev1.Pod{}, informer.Options{}),
		corev1.Resource("pods"))
	calls := make(chan string, 3)
	_, err := pods.AddTypedEventHandler(informer.TypedResourceEventHandlerFuncs[*corev1.Pod]{
		AddFunc: func(pod *corev1.Pod) { calls <- "add " + pod.Name },
		DeleteFunc: func(pod informer.DeletedObject[*corev1.Pod]) {
			calls <- "delete " + pod.GetName()
		},
	}, informer.HandlerOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go pods.Run(ctx)
	lw.changes.Delete(pod("web-1", "3"))
	for range 3 {
		fmt.Println(<-calls)
	}
	// Output:
	// add web-0
	// add web-1
	// delete web-1
}

// WaitForSync reports why a cache does not sync.
func ExampleWaitForSync() {
	pods := informer.NewSharedIndexInformer(forbidden{}, &corev1.Pod{},
		informer.Options{})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	go pods.Run(ctx)
	err, _ := errors.AsType[*informer.SyncError](informer.WaitForSync(ctx, pods))
	fmt.Println(err.Cause)
	for _, missing := range err.Missing {
		fmt.Println(missing.Name, "has not synced:", missing.Err)
	}
	// Output:
	// context deadline exceeded
	// SharedIndexInformer *v1.Pod has not synced: failed to list *v1.Pod: pods is forbidden
}

type forbidden struct{ cluster }

func (forbidden) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return nil, errors.New("pods is forbidden")
}
