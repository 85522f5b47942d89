// SPDX-License-Identifier: Apache-2.0

package shard_test

import (
	"context"
	"fmt"
	"log"
	"os/signal"
	"sync"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/shard"
	"example.com/informerstack/store"
)

// A controller of Pods. All its replicas work, each on its part.
func Example_program() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	unlimited := rest.CopyConfig(config)
	unlimited.QPS = -1 // the renewal of a Lease never waits behind other requests
	leases := kubernetes.NewForConfigOrDie(unlimited)

	shards, err := shard.New(shard.Config{
		Name: "my-controller", Namespace: "default", Client: leases.CoordinationV1().RESTClient(),
	})
	if err != nil {
		log.Fatal(err)
	}
	pods := informer.New[*corev1.Pod](client.CoreV1().RESTClient(), "pods",
		shards.Options(shard.ByUID, informer.Options{}))
	reconcile := func(ctx context.Context, key string) (controller.Result, error) {
		fmt.Println("reconcile", key)
		return controller.Result{}, nil
	}
	valueOf := shard.ValueIn(pods.GetIndexer(), shard.ByUID)
	ctrl := controller.New("pods", shard.Reconcile(shards, valueOf, reconcile),
		controller.Options[string]{WaitFor: []controller.Synced{pods.HasSyncedChecker()}})
	enqueue := ctrl.Handler(store.DeletionHandlingMetaNamespaceKeyFunc)
	if _, err := pods.AddEventHandler(enqueue); err != nil {
		log.Fatal(err)
	}

	var running sync.WaitGroup
	running.Go(func() { pods.Run(ctx) })
	running.Go(func() {
		defer stop() // a replica without its shards would do nothing
		if err := shards.Run(ctx); err != nil {
			log.Print(err)
		}
	})
	if err := ctrl.Run(ctx); err != nil {
		log.Print(err)
	}
	stop()         // a replica that does not work owns no shards
	running.Wait() // Run of Shards frees the shards
}
