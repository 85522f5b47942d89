// SPDX-License-Identifier: Apache-2.0

//go:build js && wasm

package main

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"example.com/informerstack/cmd/informerstack/lab"
	"example.com/informerstack/cmd/informerstack/run/configmaps"
	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/observe/trace"
	"example.com/informerstack/reflector"
	"example.com/informerstack/reflector/wire"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

var configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

// run connects the pieces, in the order that a change passes them, and runs them until ctx is done.
func run(ctx context.Context, l *lab.Lab, config *rest.Config, s lab.Settings) error {
	sink := l.Sink(func(trace.Event) {})

	// reflector, deltafifo and store
	kind, resource := followed(s)
	client, err := newClient(config, kind.GroupVersion(), l, sink)
	if err != nil {
		return err
	}
	lw := func(namespace string) reflector.ListerWatcher {
		newItem := func() runtime.Object { return &unstructured.Unstructured{} }
		return trace.ListerWatcher(
			wire.NewListWatch(client, resource, namespace, newItem, wire.Options{}), sink)
	}
	options, follow, err := l.FollowKind(config, informerOptions(l, s, resource, sink))
	if err != nil {
		return err
	}
	objects := l.NewInformer(lw, example(kind), options)

	// workqueue and controller
	lister := store.NewLister[*unstructured.Unstructured](objects.GetIndexer(),
		schema.GroupResource{Resource: "configmaps"})
	reconcile := configmaps.Keeper{Client: client, Lister: lister, Writes: l.Writes()}.Reconcile
	wants := configmaps.WantsChecksum
	if s.Custom {
		reconcile = func(context.Context, string) (_ controller.Result, err error) { return }
		wants = func(any) bool { return true }
	}
	ctrl := controller.New("checksum", trace.Reconcile(l.Reconcile(reconcile), sink),
		controller.Options[string]{
			Workers:     s.Workers,
			WaitFor:     []controller.Synced{objects.HasSyncedChecker()},
			Lead:        l.Lead,
			MaxAttempts: s.Attempts,
			RateLimiter: l.RateLimiter(),
			LowPriority: lab.LowPriority,
			NewQueue: func(
				_ string, limiter workqueue.TypedRateLimiter[string],
			) workqueue.TypedRateLimitingInterface[string] {
				config := l.WorkqueueConfig(workqueue.Config[string]{})
				return l.WrapWorkqueue(trace.NewRateLimitingQueue(limiter, config, sink))
			},
		})

	// handlers
	handler := informer.FilteringResourceEventHandler{
		FilterFunc: wants,
		Handler:    ctrl.Handler(store.DeletionHandlingMetaNamespaceKeyFunc),
	}
	first, err := objects.AddEventHandler(trace.EventHandler(l.ControllerHandler(handler), sink))
	if err != nil {
		return err
	}
	audit := l.Handler("audit", informer.ResourceEventHandlerFuncs{})
	second, err := objects.AddEventHandlerWithOptions(audit,
		informer.HandlerOptions{SkipPanics: true})
	if err != nil {
		return err
	}
	l.Show(lab.Pieces{Informer: objects, Controller: ctrl, Handlers: []lab.Handler{
		{Name: "checksum", Registration: first}, {Name: "audit", Registration: second},
	}})

	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { follow(ctx) })
	running.Go(func() { objects.Run(ctx) })
	return ctrl.Run(ctx)
}

// followed is what the pipeline follows.
func followed(s lab.Settings) (kind schema.GroupVersionKind, resource string) {
	if s.Custom {
		return lab.CustomKind, lab.CustomResource.Resource
	}
	return configMaps, "configmaps"
}

// example returns an object of a kind.
func example(kind schema.GroupVersionKind) *unstructured.Unstructured {
	obj := &unstructured.Unstructured{}
	obj.SetGroupVersionKind(kind)
	return obj
}

// informerOptions configures reflector, delta queue and store.
func informerOptions(
	l *lab.Lab, s lab.Settings, resource string, sink trace.Sink,
) informer.Options {
	return informer.Options{
		Indexers: store.Indexers{store.NamespaceIndex: store.MetaNamespaceIndexFunc},
		Reflector: l.ReflectorOptions(reflector.Options{
			TypeDescription: resource, UseWatchList: &s.WatchList,
		}),
		InOrder:   s.Queue == "realfifo",
		WrapQueue: l.WrapQueue(sink),
		WrapIndexer: func(indexer store.Indexer) store.Indexer {
			return trace.Indexer(indexer, sink)
		},
	}
}

// newClient returns a client for unstructured objects.
func newClient(
	config *rest.Config, version schema.GroupVersion, l *lab.Lab, sink trace.Sink,
) (*rest.RESTClient, error) {
	config = rest.CopyConfig(config)
	config.Wrap(l.WrapTransport)
	config.Wrap(trace.Writes(sink))
	config.GroupVersion, config.APIPath = &version, "/apis"
	if version.Group == "" {
		config.APIPath = "/api"
	}
	codecs := serializer.NewCodecFactory(runtime.NewScheme())
	config.NegotiatedSerializer = codecs.WithoutConversion()
	return rest.RESTClientFor(config)
}
