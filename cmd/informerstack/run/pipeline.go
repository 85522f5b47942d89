// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"example.com/informerstack/cmd/informerstack/cli"
	"example.com/informerstack/cmd/informerstack/lab"
	"example.com/informerstack/cmd/informerstack/run/cluster"
	"example.com/informerstack/cmd/informerstack/run/configmaps"
	"example.com/informerstack/controller"
	"example.com/informerstack/deltafifo"
	"example.com/informerstack/informer"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/observe/trace"
	"example.com/informerstack/reflector"
	"example.com/informerstack/reflector/wire"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

// listDeadline is the longest time until a LIST must bring an object.
const listDeadline = 2 * time.Minute

// finishReconciles is how long a running reconcile may take after Ctrl-C.
const finishReconciles = 10 * time.Second

// stack holds the pieces between the server and the worker.
type stack struct {
	informer   informer.SharedIndexInformer
	controller *controller.Controller[string]
	elector    *leaderelection.LeaderElector // nil without an election
	shared     *shared                       // nil without shards
	progress   *progress
	observed   *observation
	followKind func(context.Context) // beside the informer
}

// build connects the pieces, in the order that a change passes them. Each piece has a decorator
// that sends its events to direct, after the time control and the page. The time control does not
// hold the reflector's phases: they are not hops of a change.
func (o *options) build(
	config *rest.Config, t cluster.Target, direct trace.Sink, progress *progress, shown *page,
) (*stack, error) {
	sink := shown.sink(direct)
	t = o.followed(t)

	// metrics, health, leader election and shards
	interesting := o.interesting()
	built := &stack{progress: progress}
	if err := o.accompany(built, config, t, interesting); err != nil {
		return nil, err
	}
	observed := built.observed

	// reflector
	traced := rest.CopyConfig(config)
	traced.Wrap(shown.writes)
	traced.Wrap(trace.Writes(sink))
	traced.Wrap(observed.writes)
	client, err := restClient(traced, t)
	if err != nil {
		return nil, cli.Fail(cli.Config, "use configuration: %w", err)
	}
	lw := func(namespace string) reflector.ListerWatcher {
		return trace.ListerWatcher(wire.NewListWatch(client, t.Resource.Resource,
			cmp.Or(namespace, t.Namespace), newItem, wire.Options{Modify: t.Modify}), sink)
	}

	// deltafifo and store
	example := &unstructured.Unstructured{}
	example.SetGroupVersionKind(t.Kind)
	options := observed.options(shown.options(o.informerOptions(t, sink, progress), sink))
	options.Reflector = trace.ReflectorOptions(options.Reflector, direct)
	options, follow, err := shown.followKind(config, options)
	if err != nil {
		return nil, fmt.Errorf("follow kind: %w", err)
	}
	objects := shown.newInformer(lw, example, built.shared.options(options))

	// workqueue and controller
	work := o.work(client, t, objects.GetIndexer(), shown)
	reconcile := observed.reconcile(trace.Reconcile(shown.reconcile(work), sink))
	reconcile = built.shared.reconcile(objects.GetIndexer(), reconcile)
	ctrl := controller.New(controllerName, reconcile, controller.Options[string]{
		Workers:     o.workers,
		WaitFor:     []controller.Synced{objects.HasSyncedChecker()},
		Lead:        shown.lead(built.elector),
		MaxAttempts: o.attempts,
		RateLimiter: shown.rateLimiter(),
		LowPriority: shown.lowPriority(),
		GracePeriod: finishReconciles,
		Metrics:     observed.ofController(),
		NewQueue:    newQueue(observed, sink, shown),
	})

	// handler
	handler := informer.FilteringResourceEventHandler{
		FilterFunc: interesting,
		Handler:    ctrl.Handler(store.DeletionHandlingMetaNamespaceKeyFunc),
	}
	handle, err := observed.register(objects, t.Resource.GroupResource().String(),
		trace.EventHandler(shown.wrap(handler), sink))
	if err != nil {
		return nil, fmt.Errorf("add handler: %w", err)
	}
	built.informer, built.controller, built.followKind = objects, ctrl, follow
	built.shared.show(observed, objects.GetIndexer())
	observed.follow(t.Resource.GroupResource().String(), objects, ctrl, built.elector)
	return built, shown.follow(objects, ctrl, handle, observed)
}

// accompany adds what works beside the pipeline.
func (o *options) accompany(
	s *stack, config *rest.Config, t cluster.Target, interesting func(any) bool,
) (err error) {
	if o.listen != "" {
		if s.observed, err = newObservation(t.Resource, interesting); err != nil {
			return err
		}
	}
	if s.elector, err = o.election.elector(config, s.progress.out, s.observed); err != nil {
		return err
	}
	s.shared, err = o.sharing.share(config, s.observed)
	return err
}

// informerOptions configures the queue and the store between reflector and handlers.
func (o *options) informerOptions(
	t cluster.Target, sink trace.Sink, progress *progress,
) informer.Options {
	return informer.Options{
		Indexers: store.Indexers{store.NamespaceIndex: store.MetaNamespaceIndexFunc},
		Reflector: reflector.Options{
			TypeDescription: t.Resource.GroupResource().String(),
			UseWatchList:    &o.watchList,
			ListDeadline:    listDeadline,
			Transform:       progress.transform,
		},
		InOrder: o.queue == "realfifo",
		WrapQueue: func(queue deltafifo.Queue) deltafifo.Queue {
			return trace.DeltaQueue(queue, sink)
		},
		WrapIndexer: func(indexer store.Indexer) store.Indexer {
			return trace.Indexer(indexer, sink)
		},
	}
}

// followed is what the pipeline follows.
func (o *options) followed(t cluster.Target) cluster.Target {
	if !o.custom {
		return t
	}
	return cluster.Target{Resource: lab.CustomResource, Kind: lab.CustomKind, Namespaced: true}
}

// work returns the controller's reconcile function.
func (o *options) work(
	client rest.Interface, t cluster.Target, objects store.Indexer, shown *page,
) controller.ReconcileFunc[string] {
	writes := shown.notes()
	if !o.keepsChecksums() {
		return observe
	}
	lister := store.NewLister[*unstructured.Unstructured](objects, t.Resource.GroupResource())
	return configmaps.Keeper{Client: client, Lister: lister, Writes: writes}.Reconcile
}

// keepsChecksums reports whether the controller writes.
func (o *options) keepsChecksums() bool {
	return (o.cluster.Embedded() || o.reconcile) && !o.custom
}

// interesting returns the handler's filter.
func (o *options) interesting() func(any) bool {
	if o.keepsChecksums() {
		return configmaps.WantsChecksum
	}
	return func(any) bool { return true }
}

// newQueue returns a controller's Options.NewQueue.
func newQueue(
	observed *observation, sink trace.Sink, shown *page,
) func(string, workqueue.TypedRateLimiter[string]) workqueue.TypedRateLimitingInterface[string] {
	return func(
		name string, limiter workqueue.TypedRateLimiter[string],
	) workqueue.TypedRateLimitingInterface[string] {
		config := shown.workqueueConfig(workqueue.Config[string]{Metrics: observed.workqueue(name)})
		queue := shown.workqueue(trace.NewRateLimitingQueue(limiter, config, sink))
		return observed.notedQueue(name, queue)
	}
}

// restClient returns a client for the target's group and version that decodes unstructured JSON.
func restClient(config *rest.Config, t cluster.Target) (*rest.RESTClient, error) {
	config = dynamic.ConfigFor(config)
	gv := t.Resource.GroupVersion()
	config.GroupVersion = &gv
	config.APIPath = "/apis"
	if gv.Group == "" {
		config.APIPath = "/api"
	}
	return rest.RESTClientFor(config)
}

// run runs the informer and the controller until ctx is done, or the controller fails, or the group
// refuses this process.
func (s *stack) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	running.Go(func() { s.followKind(ctx) })
	running.Go(func() { s.informer.Run(ctx) })
	running.Go(func() { s.progress.run(ctx, s.informer, s.shared.loaded(s.informer)) })
	var refused error
	if s.shared != nil {
		running.Go(func() {
			refused = s.shared.run(ctx, s.progress.out)
			cancel()
		})
	}
	err := s.controller.Run(ctx)
	cancel()
	running.Wait()
	return cmp.Or(refused, err)
}

func newItem() runtime.Object { return &unstructured.Unstructured{} }

// observe is a reconcile function that does nothing.
func observe(context.Context, string) (controller.Result, error) { return controller.Result{}, nil }
