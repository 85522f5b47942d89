// SPDX-License-Identifier: Apache-2.0

// Manager runs cert-manager's controllers of Certificates, CertificateRequests and Issuers in the
// process that has the lease, as the project's own program does. That program is a module that no
// proxy can serve: the path in its go.mod, cert-manager/controller-binary, is not its folder,
// cmd/controller. Nothing here depends on the stack that it may run on.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/cert-manager/cert-manager/pkg/controller"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// Each controller has so many workers.
const workers = 5

func main() {
	klog.InitFlags(nil) // -v
	kubeconfig := flag.String("kubeconfig", "", "of the API server")
	namespace := flag.String("namespace", "default", "of the lease, and of ClusterIssuers' Secrets")
	leaseDuration := flag.Duration("lease-duration", 60*time.Second,
		"how long others wait for a leader that is gone")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *kubeconfig, *namespace, *leaseDuration); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, kubeconfig, namespace string, leaseDuration time.Duration) error {
	factory, err := controller.NewContextFactory(ctx, controller.ContextOptions{
		Kubeconfig:         kubeconfig,
		KubernetesAPIQPS:   20,
		KubernetesAPIBurst: 50,
		IssuerOptions:      controller.IssuerOptions{ClusterResourceNamespace: namespace},
		CertificateOptions: controller.CertificateOptions{
			CertificateRequestMinimumBackoffDuration: time.Hour,
			CertificateRequestMaximumBackoffDuration: 32 * time.Hour,
		},
	})
	if err != nil {
		return err
	}
	root, err := factory.Build()
	if err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace,
		"cert-manager-controller", resourcelock.ResourceLockConfig{
			Identity: fmt.Sprintf("%s-%d", host, os.Getpid())},
		root.RESTConfig, leaseDuration*2/3)
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
		Lock:          lock,
		LeaseDuration: leaseDuration,
		RenewDeadline: leaseDuration * 2 / 3,
		RetryPeriod:   leaseDuration / 12,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { ended <- work(ctx, factory, root) },
			OnStoppedLeading: func() { ended <- fmt.Errorf("the lease is lost or released") },
		},
	})
	return <-ended
}

// work starts the controllers, and then the informers that they asked for, until ctx ends.
func work(
	ctx context.Context, factory *controller.ContextFactory, root *controller.Context,
) error {
	for name, build := range controller.Known() {
		started, err := build(factory)
		if err != nil {
			return fmt.Errorf("build %s: %w", name, err)
		}
		go func() {
			if err := started.Run(workers, ctx); err != nil {
				klog.Background().Error(err, "A controller ended", "controller", name)
			}
		}()
	}
	root.SharedInformerFactory.Start(ctx.Done())
	root.KubeSharedInformerFactory.Start(ctx.Done())
	<-ctx.Done()
	return nil
}
