// SPDX-License-Identifier: Apache-2.0

// Controllers runs three controllers of a kube-controller-manager: the garbage collector, the
// namespace controller, and the one that aggregates cluster roles. Its argument is a kubeconfig
// file. It works until it is killed.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/pkg/controller/clusterroleaggregation"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/namespace"
)

const workers = 10

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("read %s: %w", kubeconfig, err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	objects, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	server := client.Discovery()
	typed := informers.NewSharedInformerFactory(client, 0)
	untyped := metadatainformer.NewSharedInformerFactory(objects, 0)
	started := make(chan struct{})
	collector, err := garbagecollector.NewGarbageCollector(ctx, client, objects,
		restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(server)),
		garbagecollector.DefaultIgnoredResources(),
		informerfactory.NewInformerFactory(typed, untyped), started)
	if err != nil {
		return fmt.Errorf("make the garbage collector: %w", err)
	}
	namespaces := namespace.NewNamespaceController(ctx, client, objects,
		server.ServerPreferredNamespacedResources, typed.Core().V1().Namespaces(), time.Minute,
		corev1.FinalizerKubernetes)
	roles := clusterroleaggregation.NewClusterRoleAggregation(typed.Rbac().V1().ClusterRoles(),
		client.RbacV1())
	typed.Start(ctx.Done())
	untyped.Start(ctx.Done())
	close(started)
	go namespaces.Run(ctx, workers)
	go roles.Run(ctx, workers)
	go collector.Sync(ctx, server, time.Second)
	collector.Run(ctx, workers, time.Minute)
	return nil
}
