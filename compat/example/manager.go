// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/informerstack/compat/adapt"
	"example.com/informerstack/leaderelection/resourcelock"
)

// controllerName names the controller, its queue and its Lease.
const controllerName = "configmap-checksum"

// renewDeadline is how long the leader tries to renew: the default of manager.Options.
const renewDeadline = 10 * time.Second

// newLock returns a lock of this module on a Lease.
func newLock(config *rest.Config, namespace, identity string) (resourcelock.Interface, error) {
	return resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, namespace,
		controllerName,
		resourcelock.ResourceLockConfig{Identity: identity}, config, renewDeadline)
}

// newManager returns a manager with three pieces of this module: NewInformer, NewQueue, and the
// lock.
func newManager(config *rest.Config, lock resourcelock.Interface,
	options manager.Options) (manager.Manager, error) {
	options.Cache.NewInformer = adapt.NewSharedIndexInformer
	options.LeaderElection = true
	options.LeaderElectionResourceLockInterface = adapt.Lock(lock)
	m, err := manager.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	err = ctrl.NewControllerManagedBy(m).
		Named(controllerName).
		For(&corev1.ConfigMap{}).
		WithOptions(controller.Options{NewQueue: adapt.NewQueue[reconcile.Request]}).
		Complete(checksumKeeper{m.GetClient()})
	if err != nil {
		return nil, fmt.Errorf("make controller: %w", err)
	}
	if err := m.AddReadyzCheck("cache", freshCache(m)); err != nil {
		return nil, fmt.Errorf("add health check: %w", err)
	}
	return m, nil
}

// quietFor is longer than the silence of any healthy watch: without bookmarks, a watch may be
// silent until it ends.
const quietFor = 11 * time.Minute

// freshCache returns a check that fails if the informer of the ConfigMaps has had no contact with
// its server, so that its cache may silently be old. controller-runtime has no such check; the
// informer inside the adapter has the data.
func freshCache(m manager.Manager) func(*http.Request) error {
	return func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), time.Second)
		defer cancel()
		configMaps, err := m.GetCache().GetInformer(ctx, &corev1.ConfigMap{})
		if err != nil {
			return err
		}
		informer, ok := adapt.CoreInformer(configMaps)
		if !ok {
			return fmt.Errorf("%T is not an informer of this module", configMaps)
		}
		return informer.Health().Fresh(time.Now(), quietFor)
	}
}
