// SPDX-License-Identifier: Apache-2.0

// Worker is a controller on client-go with a key in each trouble that an author may have: one hangs
// in its worker, one fails, one is filtered out by the handler, one is reconciled in a loop, one is
// not there. A factory makes a second informer, of the server in its argument. It runs until it is
// killed.
package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	"k8s.io/client-go/util/workqueue"
)

func main() {
	server := cachetesting.NewFakeControllerSource()
	for _, name := range []string{"hangs", "fails", "filtered", "loops", "works"} {
		server.Add(object(name, 0))
	}
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Hour, time.Hour),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: "settings"})
	informer := cache.NewSharedIndexInformer(server, &corev1.ConfigMap{}, 0, cache.Indexers{})
	enqueue := func(obj any) {
		key, err := cache.MetaNamespaceKeyFunc(obj)
		if err == nil && key != "default/filtered" {
			queue.Add(key)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, obj any) { enqueue(obj) },
	})
	if err != nil {
		panic(err)
	}
	for range 2 {
		go work(queue, server)
	}
	go func() {
		for change := 1; ; change++ {
			time.Sleep(time.Second)
			server.Modify(object("filtered", change))
			server.Modify(object("works", change))
		}
	}()
	watchServices(os.Args[1])
	informer.Run(make(chan struct{}))
}

// watchServices starts an informer with a namespace and a selector.
func watchServices(url string) {
	factory := informers.NewSharedInformerFactoryWithOptions(
		kubernetes.NewForConfigOrDie(&rest.Config{Host: url}), 0, informers.WithNamespace("team"),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.LabelSelector = "app=web" }))
	factory.Core().V1().Services().Informer()
	factory.Start(make(chan struct{}))
}

func object(name string, change int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Data:       map[string]string{"change": strconv.Itoa(change)},
	}
}

func work(
	queue workqueue.TypedRateLimitingInterface[string], server *cachetesting.FakeControllerSource,
) {
	for {
		key, shutdown := queue.Get()
		if shutdown {
			return
		}
		if err := reconcile(key, server); err != nil {
			queue.AddRateLimited(key)
		} else {
			queue.Forget(key)
		}
		queue.Done(key)
	}
}

func reconcile(key string, server *cachetesting.FakeControllerSource) error {
	switch key {
	case "default/hangs":
		select {}
	case "default/fails":
		return errors.New("no such volume")
	case "default/loops":
		time.Sleep(50 * time.Millisecond)
		written := object("loops", time.Now().Nanosecond())
		written.ManagedFields = []metav1.ManagedFieldsEntry{{ // as a server notes the writer
			Manager: filepath.Base(os.Args[0]), Operation: metav1.ManagedFieldsOperationUpdate}}
		server.Modify(written)
	}
	return nil
}
