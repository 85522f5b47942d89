// SPDX-License-Identifier: Apache-2.0

package adapt_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	theirelection "k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/util/workqueue"

	"example.com/informerstack/apitest"
	"example.com/informerstack/compat/adapt"
	ourcache "example.com/informerstack/compat/cache"
	"example.com/informerstack/informer"
	"example.com/informerstack/leaderelection/resourcelock"
	"example.com/informerstack/reflector"
)

// cluster starts an API server with a pod on it. A real program reads a kubeconfig instead.
func cluster() (*rest.Config, func()) {
	server := apitest.NewServer(apitest.Options{Scheme: scheme.Scheme})
	if err := server.Start(); err != nil {
		panic(err)
	}
	web := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	if err := server.Create(web); err != nil {
		panic(err)
	}
	return &rest.Config{Host: server.URL}, server.Close
}

// Where a program takes a constructor of client-go's informers, as controller-runtime's
// cache.Options.NewInformer, ours is one.
func ExampleNewSharedIndexInformer() {
	options := struct { // controller-runtime's
		NewInformer func(
			cache.ListerWatcher, runtime.Object, time.Duration, cache.Indexers,
		) cache.SharedIndexInformer
	}{}
	options.NewInformer = adapt.NewSharedIndexInformer

	i := options.NewInformer(&cache.ListWatch{}, &corev1.ConfigMap{}, 0, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
	})
	core, ours := adapt.CoreInformer(i)
	fmt.Println(ours, core.Health().Fresh(time.Now(), time.Minute))
	// Output:
	// true SharedIndexInformer *v1.ConfigMap is not fresh: it was not started
}

// client-go's informer factory starts our informer, and its lister of pods reads our store.
func ExampleNewSharedIndexInformer_factory() {
	config, stop := cluster()
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	factory := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0)
	factory.InformerFor(
		&corev1.Pod{},
		func(client kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
			lw := cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods",
				metav1.NamespaceAll, fields.Everything())
			return adapt.NewSharedIndexInformer(lw, &corev1.Pod{}, resync, cache.Indexers{
				cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
			})
		},
	)

	lister := factory.Core().
		V1().
		Pods().
		Lister()
		// every caller that asks the factory for pods gets that informer
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	pods, err := lister.Pods("default").List(labels.Everything())
	if err != nil {
		panic(err)
	}
	_, ours := adapt.CoreInformer(factory.Core().V1().Pods().Informer())
	fmt.Println(len(pods), pods[0].Name, ours)
	cancel()
	factory.Shutdown()
	// Output: 1 web true
}

// An informer with options that client-go's does not have, in a place that wants client-go's.
func ExampleNewSharedIndexInformerWithOptions() {
	config, stop := cluster()
	defer stop()
	client := kubernetes.NewForConfigOrDie(config)
	newInformer := func(
		lw cache.ListerWatcher, exampleObject runtime.Object, resync time.Duration,
		indexers cache.Indexers,
	) cache.SharedIndexInformer {
		return adapt.NewSharedIndexInformerWithOptions(lw, exampleObject, informer.Options{
			ResyncPeriod: resync,
			Indexers:     adapt.CoreIndexers(indexers),
			Reflector:    reflector.Options{WatchListPageSize: 50},
		})
	}
	i := newInformer(
		cache.NewListWatchFromClient(client.CoreV1().RESTClient(), "pods", metav1.NamespaceAll,
			fields.Everything()),
		&corev1.Pod{},
		0,
		nil,
	)

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		i.RunWithContext(ctx)
	}()
	db := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
	pods, _ := adapt.CoreInformer(i)
	made, err := client.CoreV1().Pods("default").Create(ctx, db, metav1.CreateOptions{})
	if err != nil {
		panic(err)
	}
	err = pods.WaitForResourceVersion(ctx, made.ResourceVersion)
	_, exists, _ := pods.GetStore().GetByKey("default/db") // as it was written, or newer
	fmt.Println(exists, err)
	cancel()
	<-done
	// Output: true <nil>
}

// Each handler gets tombstones of the type that it knows.
func ExampleCoreEventHandler() {
	library, handler := cache.ResourceEventHandlerFuncs{}, ourcache.ResourceEventHandlerFuncs{}
	ours := ourcache.NewSharedInformer(&cache.ListWatch{}, &corev1.Pod{}, 0)
	theirs := cache.NewSharedInformer(&cache.ListWatch{}, &corev1.Pod{}, 0)

	// a library's handler, which knows client-go, on an informer of compat/cache
	_, err := ours.AddEventHandler(adapt.CoreEventHandler(library))
	fmt.Println(err)

	// your handler, which uses compat/cache, on an informer of client-go
	_, err = theirs.AddEventHandler(adapt.EventHandler(handler))
	fmt.Println(err)
	// Output:
	// <nil>
	// <nil>
}

// A lister that was generated for client-go reads a store of ours.
func ExampleNewIndexer() {
	indexer := adapt.NewIndexer(cache.MetaNamespaceKeyFunc,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	stored := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	if err := indexer.Add(stored); err != nil {
		panic(err)
	}
	pods := listers.NewPodLister(indexer).Pods("default")
	web, err := pods.Get("web")
	fmt.Println(web.Name, err)
	_, err = pods.Get("db")
	fmt.Println(err)
	// Output:
	// web <nil>
	// pod "db" not found
}

// Where a program takes a constructor of client-go's queues, as controller-runtime's
// controller.Options.NewQueue, ours is one.
func ExampleNewQueue() {
	type request struct{ namespace, name string } // controller-runtime's reconcile.Request
	options := struct {
		NewQueue func(
			controllerName string, rateLimiter workqueue.TypedRateLimiter[request],
		) workqueue.TypedRateLimitingInterface[request]
	}{}
	options.NewQueue = adapt.NewQueue[request]

	queue := options.NewQueue("pods", workqueue.DefaultTypedControllerRateLimiter[request]())
	queue.Add(request{"default", "web"})
	queue.Add(request{"default", "web"})
	item, _ := queue.Get()
	fmt.Println(item, queue.Len())
	queue.Done(item)
	queue.ShutDown()
	// Output: {default web} 0
}

// An elector of client-go, controller-runtime's included, with a lock of ours.
func ExampleLock() {
	config, stop := cluster()
	defer stop()
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, "default",
		"example", resourcelock.ResourceLockConfig{Identity: "me"}, config, 10*time.Second)
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(quiet())
	theirelection.RunOrDie(ctx, theirelection.LeaderElectionConfig{
		Lock:            adapt.Lock(lock), // or manager.Options.LeaderElectionResourceLockInterface
		LeaseDuration:   15 * time.Second,
		RenewDeadline:   10 * time.Second,
		RetryPeriod:     2 * time.Second,
		ReleaseOnCancel: true,
		Callbacks: theirelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {
				record, _, err := lock.Get(ctx)
				fmt.Println("leader:", record.HolderIdentity, err)
				cancel()
			},
			OnStoppedLeading: func() {},
		},
	})
	// Output: leader: me <nil>
}
