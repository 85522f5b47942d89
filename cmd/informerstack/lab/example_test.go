// SPDX-License-Identifier: Apache-2.0

package lab_test

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/informer"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

// cluster is a ListerWatcher with one object, which never changes.
type cluster struct{}

func (cluster) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	web := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "web", ResourceVersion: "1",
	}}
	return &corev1.ConfigMapList{
		ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.ConfigMap{web},
	}, nil
}

func (cluster) WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error) {
	return watch.NewRaceFreeFake(), nil
}

func (cluster) IsWatchListSemanticsUnSupported() bool { return true }

// A controller as a learner writes it. The page shows the part between the two marks in its tab
// Code: see code.go. Here the first call of reconcile fails, and the second one succeeds.
func Example() {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	objects := informer.NewSharedIndexInformer(cluster{}, &corev1.ConfigMap{}, informer.Options{})
	go objects.Run(ctx)
	keyOf := store.DeletionHandlingMetaNamespaceKeyFunc
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.DefaultTypedControllerRateLimiter[string](), workqueue.Config[string]{})
	reconcile := func(key string) error {
		if queue.NumRequeues(key) == 0 {
			fmt.Println(key, "failed")
			return errors.New("not ready")
		}
		fmt.Println(key, "reconciled")
		queue.ShutDown()
		return nil
	}

	// The page shows this.
	enqueue := func(obj any) {
		key, _ := keyOf(obj)
		queue.Add(key)
	}
	objects.AddEventHandler(informer.ResourceEventHandlerFuncs{
		AddFunc: enqueue, DeleteFunc: enqueue,
		UpdateFunc: func(_, obj any) { enqueue(obj) },
	})
	for { // each worker
		key, shutdown := queue.Get()
		if shutdown {
			return
		}
		if err := reconcile(key); err != nil {
			queue.AddRateLimited(key)
		} else {
			queue.Forget(key)
		}
		queue.Done(key)
	}
	// The page shows no more.

	// Output:
	// default/web failed
	// default/web reconciled
}
