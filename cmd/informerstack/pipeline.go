// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"example.com/informerstack/controller"
	"example.com/informerstack/deltafifo"
	"example.com/informerstack/informer"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
	"example.com/informerstack/trace"
	"example.com/informerstack/workqueue"
)

// controllerName is the controller's name in logs and metrics, and its queue's.
const controllerName = "checksum"

// finishReconciles is how long a reconcile may go on after Ctrl-C.
const finishReconciles = 10 * time.Second

// stack is everything between the server and the worker.
type stack struct {
	informer   informer.SharedIndexInformer
	controller *controller.Controller[string]
	elector    *leaderelection.LeaderElector // nil: it always leads
	progress   *progress
	observed   *observation
}

// build puts the pieces together, in the order in which a change meets them. Each is wrapped to tell sink.
func (o *options) build(config *rest.Config, t target, sink trace.Sink, progress *progress) (*stack, error) {
	traced := rest.CopyConfig(config)
	traced.Wrap(trace.Writes(sink))
	client, err := restClient(traced, t)
	if err != nil {
		return nil, fail(exitConfig, "use configuration: %w", err)
	}

	// reflector
	newItem := func() runtime.Object { return &unstructured.Unstructured{} }
	lw := reflector.NewStreamingListWatch(client, t.resource.Resource, t.namespace, newItem, t.modify)

	// what is seen of the rest
	interesting := everything
	if o.embedded() || o.reconcile {
		interesting = wantsChecksum
	}
	observed, err := o.observe(t, interesting)
	if err != nil {
		return nil, err
	}
	elector, err := o.election.elector(config, progress.out, observed)
	if err != nil {
		return nil, err
	}

	// deltafifo and store
	example := &unstructured.Unstructured{}
	example.SetGroupVersionKind(t.kind)
	objects := informer.NewSharedIndexInformer(trace.ListerWatcher(lw, sink), example, observed.options(informer.SharedIndexInformerOptions{
		ObjectDescription: t.resource.GroupResource().String(),
		Indexers:          store.Indexers{store.NamespaceIndex: store.MetaNamespaceIndexFunc},
		Transform:         progress.transform,
		Reflector:         reflector.Options{UseWatchList: &o.watchList},
		QueueOptions: informer.QueueOptions{
			InOrder:   o.queue == "realfifo",
			WrapQueue: func(queue deltafifo.Queue) deltafifo.Queue { return trace.DeltaQueue(queue, sink) },
		},
		WrapIndexer: func(indexer store.Indexer) store.Indexer { return trace.Indexer(indexer, sink) },
	}))

	// workqueue and controller
	reconcile := observe
	if o.embedded() || o.reconcile {
		keeper := checksumKeeper{client: client, lister: store.NewLister[*unstructured.Unstructured](objects.GetIndexer(), t.resource.GroupResource())}
		reconcile = keeper.reconcile
	}
	ctrl := controller.New(controllerName, observed.reconcile(trace.Reconcile(reconcile, sink)), controller.Options[string]{
		Workers:     o.workers,
		WaitFor:     []controller.Synced{controller.CacheOf(objects)},
		Lead:        lead(elector),
		GracePeriod: finishReconciles,
		Metrics:     observed.ofController(),
		NewQueue:    newQueue(observed.workqueue(), sink),
	})

	// handler
	handler := informer.FilteringResourceEventHandler{
		FilterFunc: interesting,
		Handler:    ctrl.Handler(store.DeletionHandlingMetaNamespaceKeyFunc),
	}
	if _, err := objects.AddEventHandler(observed.eventHandler(trace.EventHandler(handler, sink))); err != nil {
		return nil, fmt.Errorf("add handler: %w", err)
	}
	built := &stack{objects, ctrl, elector, progress, observed}
	observed.follow(built, t.resource.GroupResource().String())
	return built, nil
}

// newQueue is a controller's Options.NewQueue.
func newQueue(provider workqueue.MetricsProvider, sink trace.Sink) func(string, workqueue.TypedRateLimiter[string]) workqueue.TypedRateLimitingInterface[string] {
	return func(name string, limiter workqueue.TypedRateLimiter[string]) workqueue.TypedRateLimitingInterface[string] {
		queue := workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[string]{
			Name: name, MetricsProvider: provider,
		})
		return trace.RateLimitingQueue(queue, sink)
	}
}

// restClient talks to the target's group and version in unstructured JSON.
func restClient(config *rest.Config, t target) (*rest.RESTClient, error) {
	config = dynamic.ConfigFor(config)
	gv := t.resource.GroupVersion()
	config.GroupVersion = &gv
	config.APIPath = "/apis"
	if gv.Group == "" {
		config.APIPath = "/api"
	}
	return rest.RESTClientFor(config)
}

// run lets the informer and the controller run until ctx is done, or one of them gives up.
func (s *stack) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { s.informer.Run(ctx) })
	running.Go(func() { s.progress.run(ctx, s.informer) })
	err := s.controller.Run(ctx)
	cancel()
	running.Wait()
	return err
}

func everything(any) bool { return true }

// observe is the reconcile function that leaves the cluster alone.
func observe(context.Context, string) (controller.Result, error) { return controller.Result{}, nil }
