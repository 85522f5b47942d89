// SPDX-License-Identifier: Apache-2.0

// Example is a controller-runtime manager that uses the informers, the queue and the
// leader-election lock of this module. The rest is like any program on controller-runtime. The
// program annotates each ConfigMap with the checksum of its data.
//
// Read manager.go (the three places), checksum.go (the reconciler), main.go (flags, and the server
// if there is no cluster), workload.go (the changes on that server). With --shards, all replicas
// work at the same time: see shards.go.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/informerstack/apitest"
)

func main() {
	// controller-runtime's config package has registered --kubeconfig.
	inCluster := flag.Bool("in-cluster", false,
		"use the service account of the pod that this runs in")
	namespace := flag.String("leader-election-namespace", "default", "where the Lease is")
	metrics := flag.String("metrics-bind-address", "0", "where metrics are served; 0 is nowhere")
	probes := flag.String("health-probe-bind-address", "0",
		"where /healthz and /readyz are served; 0 is nowhere")
	shardCount := flag.Int("shards", 0,
		"number of shards that all replicas work on at the same time; 0 elects one leader instead")
	flag.Parse()

	ctrl.SetLogger(klog.Background())
	options := manager.Options{
		LeaderElectionNamespace: *namespace,
		Metrics:                 metricsserver.Options{BindAddress: *metrics},
		HealthProbeBindAddress:  *probes,
	}
	kubeconfig := flag.Lookup(config.KubeconfigFlagName).Value.String()
	cluster := *inCluster || kubeconfig != ""
	if err := run(ctrl.SetupSignalHandler(), cluster, *shardCount, options); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run runs the manager until ctx is done, against a cluster or against its own server with a
// workload.
func run(
	ctx context.Context, cluster bool, shardCount int, options manager.Options,
) (err error) {
	var restConfig *rest.Config
	if cluster {
		if restConfig, err = config.GetConfig(); err != nil {
			return fmt.Errorf("find cluster: %w", err)
		}
	} else {
		server := apitest.NewServer(apitest.Options{Scheme: scheme.Scheme})
		if err := server.Start(); err != nil {
			return fmt.Errorf("start embedded server: %w", err)
		}
		defer server.Close()
		restConfig = &rest.Config{Host: server.URL}
	}

	m, err := newReplica(restConfig, shardCount, options)
	if err != nil {
		return err
	}
	if !cluster {
		if err := m.Add(workload{m.GetClient()}); err != nil {
			return fmt.Errorf("add workload: %w", err)
		}
	}
	if err := m.Start(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("run manager: %w", err)
	}
	return nil
}

// newReplica returns the manager of this process, which shares the work with other replicas or is
// ready to take it over.
func newReplica(
	restConfig *rest.Config, shardCount int, options manager.Options,
) (manager.Manager, error) {
	hostname, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("choose identity: %w", err)
	}
	identity := fmt.Sprintf("%s_%d", hostname, os.Getpid())
	namespace := options.LeaderElectionNamespace
	if shardCount > 0 {
		shards, err := newShards(restConfig, namespace, identity, shardCount)
		if err != nil {
			return nil, err
		}
		return newShardedManager(restConfig, shards, options)
	}
	lock, err := newLock(restConfig, namespace, identity)
	if err != nil {
		return nil, err
	}
	return newManager(restConfig, lock, options)
}
