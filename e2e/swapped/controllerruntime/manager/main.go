// SPDX-License-Identifier: Apache-2.0

// Manager is an operator as users of controller-runtime write them: for each ConfigMap with a label
// it keeps a Secret with the same data, and only one of several processes does so at a time.
// Nothing in it depends on the stack that it may run on.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/pprof"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// copyLabel is the label of a ConfigMap that requests a copy. With the value "no", a namespace
// forbids copies.
const copyLabel = "copy-to-secret"

// options are the flags.
type options struct {
	namespace, address          string
	leaseDuration               time.Duration
	priorityQueue, askInHandler bool
}

func main() {
	var o options
	flag.StringVar(&o.namespace, "namespace", "default", "where to look")
	flag.StringVar(&o.address, "address", "127.0.0.1:8080", "where to serve metrics and goroutines")
	flag.DurationVar(&o.leaseDuration, "lease-duration", 15*time.Second,
		"how long others wait for a leader that is gone")
	flag.BoolVar(&o.priorityQueue, "priority-queue", true, "use controller-runtime's own queue")
	flag.BoolVar(&o.askInHandler, "ask-in-handler", false,
		"get each ConfigMap's namespace from the server in the handler, which should not wait")
	flag.Parse() // controller-runtime has the flag --kubeconfig
	ctrl.SetLogger(klog.Background())
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(o options) error {
	clientConfig, err := ctrl.GetConfig()
	if err != nil {
		return err
	}
	renewDeadline, retryPeriod := o.leaseDuration*2/3, o.leaseDuration/6
	namespaces := map[string]cache.Config{o.namespace: {}}
	manager, err := ctrl.NewManager(clientConfig, ctrl.Options{
		Cache:                   cache.Options{DefaultNamespaces: namespaces},
		Controller:              config.Controller{UsePriorityQueue: &o.priorityQueue},
		LeaderElection:          true,
		LeaderElectionID:        "copier",
		LeaderElectionNamespace: o.namespace,
		LeaseDuration:           &o.leaseDuration,
		RenewDeadline:           &renewDeadline,
		RetryPeriod:             &retryPeriod,
		Metrics: server.Options{
			BindAddress:   o.address,
			ExtraHandlers: map[string]http.Handler{"/goroutines": pprof.Handler("goroutine")},
		},
	})
	if err != nil {
		return err
	}
	wants := predicate.NewPredicateFuncs(func(obj client.Object) bool {
		return obj.GetLabels()[copyLabel] != "" &&
			(!o.askInHandler || mayBeCopied(manager.GetAPIReader(), obj.GetNamespace()))
	})
	err = ctrl.NewControllerManagedBy(manager).
		For(&corev1.ConfigMap{}, builder.WithPredicates(wants)).
		Owns(&corev1.Secret{}).
		Complete(&copier{manager.GetClient()})
	if err != nil {
		return err
	}
	return manager.Start(ctrl.SetupSignalHandler())
}

// mayBeCopied asks the server whether ConfigMaps of a namespace may be copied.
func mayBeCopied(server client.Reader, name string) bool {
	var namespace corev1.Namespace
	err := server.Get(context.Background(), client.ObjectKey{Name: name}, &namespace)
	return err != nil || namespace.Labels[copyLabel] != "no"
}

// copier keeps the Secret of a ConfigMap equal to it.
type copier struct{ client client.Client }

// Reconcile reads the ConfigMap from the cache and creates or updates its Secret. It does nothing
// for a deleted one: the garbage collector deletes the Secret.
func (c *copier) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var from corev1.ConfigMap
	if err := c.client.Get(ctx, request.NamespacedName, &from); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	to := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: from.Namespace, Name: from.Name}}
	_, err := controllerutil.CreateOrUpdate(ctx, c.client, to, func() error {
		to.Data = map[string][]byte{}
		for key, value := range from.Data {
			to.Data[key] = []byte(value)
		}
		return controllerutil.SetControllerReference(&from, to, c.client.Scheme())
	})
	return ctrl.Result{}, err
}
