// SPDX-License-Identifier: Apache-2.0

// Package foo is the controller of "Client-go code breakdown (4): Work Queue", whole: it gives each
// Foo its Deployment.
//
//	Foo, Deployment -> informers -> enqueueFoo, handleObject -> [queue]
//	[queue] -> processNextWorkItem -> syncHandler -> Deployment, Foo
//
// There are two copies of it. One imports cache and workqueue from client-go, the other from
// compat, and nothing else differs: those imports are the last group of each file.
//
// Since the post was written, queues have become typed and Run takes a context. Comments mark other
// changes to the post's listing. Package api and main.go replace the generated client, informer and
// lister of the post's project.
//
// Read controller.go, with the post's numbers, then sync.go and main.go. Goroutines: Main's, which
// ends them. Locking: none; the caches and the queue have their own.
//
// To see both at work: go -C e2e test -v ./foo
package foo

import (
	"context"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"example.com/informerstack/e2e/foo/api"

	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Controller keeps one Deployment for each Foo. (1. The structure.)
type Controller struct {
	kubeclientset   kubernetes.Interface // writes Deployments
	sampleclientset *api.Clientset       // writes Foos

	// Objects are read from the informers' caches; Synced reports that a cache is complete.
	deploymentsLister cache.GenericLister
	deploymentsSynced cache.InformerSynced
	foosLister        cache.GenericLister
	foosSynced        cache.InformerSynced

	workqueue workqueue.TypedRateLimitingInterface[string] // keys of Foos that may need a change
	recorder  record.EventRecorder
}

// NewController returns a controller that follows both informers, which the caller runs. (2. Its
// start.)
func NewController(
	kubeclientset kubernetes.Interface,
	sampleclientset *api.Clientset,
	deploymentInformer, fooInformer cache.SharedIndexInformer,
	recorder record.EventRecorder,
) (*Controller, error) {
	c := &Controller{
		kubeclientset:   kubeclientset,
		sampleclientset: sampleclientset,
		deploymentsLister: cache.NewGenericLister(deploymentInformer.GetIndexer(),
			appsv1.Resource("deployments")),
		deploymentsSynced: deploymentInformer.HasSynced,
		foosLister: cache.NewGenericLister(fooInformer.GetIndexer(),
			api.GroupVersion.WithResource("foos").GroupResource()),
		foosSynced: fooInformer.HasSynced,
		workqueue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.DefaultTypedControllerRateLimiter[string](),
			workqueue.TypedRateLimitingQueueConfig[string]{Name: "Foos"},
		),
		recorder: recorder,
	}
	if _, err := fooInformer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    c.enqueueFoo,
		UpdateFunc: func(_, newObj any) { c.enqueueFoo(newObj) },
	}); err != nil {
		return nil, fmt.Errorf("follow Foos: %w", err)
	}
	// A Foo is also synced when its Deployment changes, by any client.
	if _, err := deploymentInformer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.handleObject,
		UpdateFunc: func(oldObj, newObj any) {
			before, after := oldObj.(*appsv1.Deployment), newObj.(*appsv1.Deployment)
			if before.ResourceVersion != after.ResourceVersion {
				c.handleObject(newObj)
			} // otherwise it is a resync: Foos have their own
		},
		DeleteFunc: c.handleObject,
	}); err != nil {
		return nil, fmt.Errorf("follow Deployments: %w", err)
	}
	return c, nil
}

// enqueueFoo puts a Foo's key into the queue, once for any number of changes. (3. Enqueue.)
func (c *Controller) enqueueFoo(obj any) {
	key, err := cache.MetaNamespaceKeyFunc(obj)
	if err != nil {
		utilruntime.HandleError(err)
		return
	}
	c.workqueue.Add(key) // AddRateLimited, as in the post, would count a change as a failure
}

// handleObject finds the Foo that owns an object.
func (c *Controller) handleObject(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj // the watch missed the delete: this is the last known state
	}
	object, err := meta.Accessor(obj)
	if err != nil {
		utilruntime.HandleError(fmt.Errorf("find the owner of %T: %w", obj, err))
		return
	}
	owner := metav1.GetControllerOf(object)
	if owner == nil || schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind) != api.FooKind {
		return
	}
	foo, err := c.foosLister.ByNamespace(object.GetNamespace()).Get(owner.Name)
	if err != nil {
		return // the Foo is deleted; the object will be collected as garbage
	}
	c.enqueueFoo(foo)
}

// Run runs threadiness workers until ctx is done, and waits for their end. (4. The control loop.)
func (c *Controller) Run(ctx context.Context, threadiness int) error {
	var workers sync.WaitGroup
	defer workers.Wait()
	defer c.workqueue.ShutDown() // ends the workers when they have processed the queued keys

	if !cache.WaitForNamedCacheSync("foo", ctx.Done(), c.deploymentsSynced, c.foosSynced) {
		return fmt.Errorf("wait for the caches: %w", context.Cause(ctx))
	}
	for range threadiness {
		workers.Go(func() { wait.UntilWithContext(ctx, c.runWorker, time.Second) })
	}
	<-ctx.Done()
	return nil
}

// runWorker processes keys until the queue is shut down. (5. One key after the other.)
func (c *Controller) runWorker(ctx context.Context) {
	for c.processNextWorkItem(ctx) {
	}
}

// processNextWorkItem waits for a key and syncs its Foo. It returns false after the shutdown.
func (c *Controller) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := c.workqueue.Get()
	if shutdown {
		return false
	}
	defer c.workqueue.Done(key) // until then, no other worker gets this key

	if err := c.syncHandler(ctx, key); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Will try again", "foo", key)
		c.workqueue.AddRateLimited(key) // with growing delays; the post leaves this line out
		return true
	}
	c.workqueue.Forget(key) // the next failure counts as the first again
	return true
}
