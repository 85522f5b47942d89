// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/informerstack/compat/adapt"
	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/shard"
)

// newShards returns this replica's part of the group. Its client has no rate limit, so that neither
// renewals nor moves wait.
func newShards(config *rest.Config, namespace, identity string, count int) (*shard.Shards, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make client of the shards: %w", err)
	}
	return shard.New(shard.Config{
		Name: controllerName, Namespace: namespace, Client: client.CoordinationV1().RESTClient(),
		Count: count, Identity: identity,
	})
}

// maxStuck is how long a reconcile may continue after its shard was to move, before the process is
// restarted.
const maxStuck = time.Minute

// newShardedManager returns a manager that works at the same time as those of other replicas. Its
// cache holds, and its reconciler gets, only the ConfigMaps of the shards that this replica owns.
// If one part of it ends with an error, such as the controller, all do, and the shards are free.
func newShardedManager(
	config *rest.Config, shards *shard.Shards, options manager.Options,
) (manager.Manager, error) {
	options.Cache.NewInformer = func(
		lw toolscache.ListerWatcher, obj runtime.Object, resync time.Duration,
		indexers toolscache.Indexers,
	) toolscache.SharedIndexInformer {
		o := informer.Options{
			ResyncPeriod: resync, Indexers: adapt.CoreIndexers(indexers), InOrder: true,
		}
		if _, shared := obj.(*corev1.ConfigMap); shared { // other kinds are cached whole
			o = shards.Options(shard.ByUID, o)
		}
		return adapt.NewSharedIndexInformerWithOptions(lw, obj, o)
	}
	m, err := manager.New(config, options)
	if err != nil {
		return nil, fmt.Errorf("make manager: %w", err)
	}
	valueOf, err := configMapValues(m.GetCache())
	if err != nil {
		return nil, err
	}
	err = ctrl.NewControllerManagedBy(m).
		Named(controllerName).
		For(&corev1.ConfigMap{}).
		Complete(guarded(shards, valueOf, checksumKeeper{m.GetClient()}))
	if err != nil {
		return nil, fmt.Errorf("make controller: %w", err)
	}
	if err := m.Add(manager.RunnableFunc(shards.Run)); err != nil {
		return nil, fmt.Errorf("add shards: %w", err)
	}
	// Only a restart helps if the cache cannot be filled, or a reconcile ignores its context.
	alive := func(*http.Request) error { return shards.Check(maxStuck) }
	if err := m.AddHealthzCheck("shards", alive); err != nil {
		return nil, fmt.Errorf("add health check: %w", err)
	}
	ready := func(*http.Request) error {
		if !shards.Ready() {
			return errors.New("this replica does not work on its part yet")
		}
		return nil
	}
	if err := m.AddReadyzCheck("shards", ready); err != nil {
		return nil, fmt.Errorf("add health check: %w", err)
	}
	return m, nil
}

// configMapValues returns the function that finds the UID of a request's ConfigMap.
func configMapValues(c cache.Cache) (func(reconcile.Request) (string, bool), error) {
	configMaps, err := c.GetInformer(context.Background(), &corev1.ConfigMap{},
		cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("make informer of ConfigMaps: %w", err)
	}
	core, ok := adapt.CoreInformer(configMaps)
	if !ok {
		return nil, fmt.Errorf("%T is not an informer of this module", configMaps)
	}
	valueOf := shard.ValueIn(core.GetIndexer(), shard.ByUID)
	return func(request reconcile.Request) (string, bool) { return valueOf(request.String()) }, nil
}

// guarded returns a reconciler that calls inner only for requests of shards that this replica owns.
func guarded(
	shards *shard.Shards, valueOf func(reconcile.Request) (string, bool),
	inner reconcile.Reconciler,
) reconcile.Reconciler {
	return reconcile.Func(func(
		ctx context.Context, request reconcile.Request,
	) (result reconcile.Result, err error) {
		next := func(ctx context.Context, request reconcile.Request) (controller.Result, error) {
			result, err = inner.Reconcile(ctx, request)
			return controller.Result{RequeueAfter: result.RequeueAfter}, err
		}
		allowed, err := shard.Reconcile(shards, valueOf, next)(ctx, request)
		result.RequeueAfter = allowed.RequeueAfter // if refused, the pause before the next attempt
		return result, err
	})
}
