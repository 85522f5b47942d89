// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	clientqueue "k8s.io/client-go/util/workqueue"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/store"
)

// program is a controller with many handlers. It runs until ctx is done and everything that it
// started has ended, and calls synced once its workers may run.
type program func(
	ctx context.Context, client kubernetes.Interface, r *recorder, synced func(),
) error

// programs are the same program on this stack and on client-go, by name.
var programs = map[string]program{"ours": ours, "client-go": clientGo}

func ours(
	ctx context.Context, client kubernetes.Interface, r *recorder, synced func(),
) error {
	objects := informer.New[*corev1.ConfigMap](client.CoreV1().RESTClient(), "configmaps",
		informer.Options{})
	get := func(namespace, name string) (*corev1.ConfigMap, error) {
		return objects.Lister().ByNamespace(namespace).Get(name)
	}
	reconcile := func(_ context.Context, name store.ObjectName) (controller.Result, error) {
		return controller.Result{}, r.reconcile(name.Name, get)
	}
	ctrl := controller.New("soak", reconcile, controller.Options[store.ObjectName]{
		Workers: workerCount, WaitFor: []controller.Synced{objects.HasSyncedChecker()},
	})
	_, err := objects.AddEventHandler(ctrl.Handler(store.DeletionHandlingObjectToName))
	for i := enqueuer + 1; err == nil && i < handlerCount; i++ {
		_, err = objects.AddTypedEventHandler(
			informer.TypedResourceEventHandlerFuncs[*corev1.ConfigMap]{
				AddFunc:    func(obj *corev1.ConfigMap) { r.added(i, obj) },
				UpdateFunc: func(_, obj *corev1.ConfigMap) { r.updated(i, obj) },
				DeleteFunc: func(gone informer.DeletedObject[*corev1.ConfigMap]) {
					r.removed(i, gone.GetName(), knownVersion(gone.OptionalObj))
				},
			}, informer.HandlerOptions{})
	}
	if err != nil {
		return err
	}
	var running sync.WaitGroup
	running.Go(func() { objects.Run(ctx) })
	if informer.WaitForSync(ctx, objects) == nil {
		synced()
	}
	err = ctrl.Run(ctx)
	running.Wait()
	return err
}

// clientGo is written as client-go's documentation and sample-controller advise.
func clientGo(
	ctx context.Context, client kubernetes.Interface, r *recorder, synced func(),
) error {
	factory := informers.NewSharedInformerFactory(client, 0)
	objects := factory.Core().V1().ConfigMaps()
	lister := objects.Lister()
	get := func(namespace, name string) (*corev1.ConfigMap, error) {
		return lister.ConfigMaps(namespace).Get(name)
	}
	queue := clientqueue.NewTypedRateLimitingQueue(
		clientqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]())
	enqueue := func(obj any) {
		if name, err := cache.DeletionHandlingObjectToName(obj); err == nil {
			queue.Add(name)
		}
	}
	_, err := objects.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, obj any) { enqueue(obj) }, DeleteFunc: enqueue,
	})
	for i := enqueuer + 1; err == nil && i < handlerCount; i++ {
		_, err = objects.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { r.added(i, obj.(*corev1.ConfigMap)) },
			UpdateFunc: func(_, obj any) { r.updated(i, obj.(*corev1.ConfigMap)) },
			DeleteFunc: func(obj any) {
				if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
					obj = gone.Obj
				}
				last := obj.(*corev1.ConfigMap)
				r.removed(i, last.Name, knownVersion(last))
			},
		})
	}
	if err != nil {
		return err
	}
	factory.StartWithContext(ctx)
	var working sync.WaitGroup
	if cache.WaitForCacheSync(ctx.Done(), objects.Informer().HasSynced) {
		synced()
		for range workerCount {
			working.Go(func() {
				for work(queue, func(name string) error { return r.reconcile(name, get) }) {
				}
			})
		}
	}
	<-ctx.Done()
	queue.ShutDown()
	working.Wait()
	factory.Shutdown()
	return nil
}

// work handles one key of the queue, and returns false when the queue has shut down.
func work(
	queue clientqueue.TypedRateLimitingInterface[cache.ObjectName],
	reconcile func(name string) error,
) bool {
	key, shutdown := queue.Get()
	if shutdown {
		return false
	}
	defer queue.Done(key)
	if err := reconcile(key.Name); err != nil {
		queue.AddRateLimited(key)
		return true
	}
	queue.Forget(key)
	return true
}

// knownVersion is the version of an object that may be nil.
func knownVersion(obj *corev1.ConfigMap) uint64 {
	if obj == nil {
		return 0
	}
	return versionOf(obj)
}
