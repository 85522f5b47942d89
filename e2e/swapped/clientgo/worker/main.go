// SPDX-License-Identifier: Apache-2.0

// Worker is a controller on client-go with a key in each trouble that an author may have: one hangs
// in its worker, one fails, one is filtered out by the handler, one is not there. It runs until it
// is killed.
package main

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
	cachetesting "k8s.io/client-go/tools/cache/testing"
	"k8s.io/client-go/util/workqueue"
)

func main() {
	server := cachetesting.NewFakeControllerSource()
	for _, name := range []string{"hangs", "fails", "filtered"} {
		server.Add(&corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
	}
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](time.Hour, time.Hour),
		workqueue.TypedRateLimitingQueueConfig[string]{Name: "settings"})
	informer := cache.NewSharedIndexInformer(server, &corev1.ConfigMap{}, 0, cache.Indexers{})
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) {
		key, err := cache.MetaNamespaceKeyFunc(obj)
		if err == nil && key != "default/filtered" {
			queue.Add(key)
		}
	}})
	if err != nil {
		panic(err)
	}
	for range 2 {
		go work(queue)
	}
	informer.Run(make(chan struct{}))
}

func work(queue workqueue.TypedRateLimitingInterface[string]) {
	for {
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
}

func reconcile(key string) error {
	switch key {
	case "default/hangs":
		select {}
	case "default/fails":
		return errors.New("no such volume")
	}
	return nil
}
