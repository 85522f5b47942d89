// SPDX-License-Identifier: Apache-2.0

// Package foo is the controller of "Client-go code breakdown (4): Work Queue", whole: it gives each
// Foo its Deployment.
//
//	Foo, Deployment -> informers -> enqueueFoo, handleObject -> [queue]
//	[queue] -> processNextWorkItem -> syncHandler -> Deployment, Foo
//
// It is there twice. One copy imports cache and workqueue from client-go, the other from compat,
// and nothing else differs: those imports stand last in each file, in a group of their own.
//
// Since the post, queues have got types and Run a context. What the post's listing leaves out or
// does otherwise is said where it is done. Foos, for which its project has a generated client,
// informer and lister, have package api and main.go here.
//
// Read controller.go, whose numbers are the post's, then sync.go and main.go.
// Goroutines: Main's, which ends them. Locking: none; the caches and the queue have their own.
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

	"example.com/informerstack/compat/cache"
	"example.com/informerstack/compat/workqueue"
)

// Controller keeps one Deployment for each Foo. (1. The structure.)
type Controller struct {
	kubeclientset   kubernetes.Interface // writes Deployments
	sampleclientset *api.Clientset       // writes Foos

	// What is read comes from the informers' caches; Synced says that a cache is complete.
	deploymentsLister cache.GenericLister
	deploymentsSynced cache.InformerSynced
	foosLister        cache.GenericLister
	foosSynced        cache.InformerSynced

	workqueue workqueue.TypedRateLimitingInterface[string] // keys of Foos that may need something
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
	// A Foo is also looked at when its Deployment changes, whoever changed it.
	if _, err := deploymentInformer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: c.handleObject,
		UpdateFunc: func(oldObj, newObj any) {
			before, after := oldObj.(*appsv1.Deployment), newObj.(*appsv1.Deployment)
			if before.ResourceVersion != after.ResourceVersion {
				c.handleObject(newObj)
			} // else a resync: Foos have their own
		},
		DeleteFunc: c.handleObject,
	}); err != nil {
		return nil, fmt.Errorf("follow Deployments: %w", err)
	}
	return c, nil
}

// enqueueFoo puts a Foo's key into the queue, once however often it changes. (3. Enqueue.)
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
		obj = tombstone.Obj // the watch missed the delete: this is the last state that it knew
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
		return // it is deleted, and the object will be, as garbage
	}
	c.enqueueFoo(foo)
}

// Run runs threadiness workers until ctx is done, and waits for their end. (4. The control loop.)
func (c *Controller) Run(ctx context.Context, threadiness int) error {
	var workers sync.WaitGroup
	defer workers.Wait()
	defer c.workqueue.ShutDown() // ends the workers, once they have looked at what is queued

	if !cache.WaitForNamedCacheSync("foo", ctx.Done(), c.deploymentsSynced, c.foosSynced) {
		return fmt.Errorf("wait for the caches: %w", context.Cause(ctx))
	}
	for range threadiness {
		workers.Go(func() { wait.UntilWithContext(ctx, c.runWorker, time.Second) })
	}
	<-ctx.Done()
	return nil
}

// runWorker works until the queue is shut down. (5. One key after the other.)
func (c *Controller) runWorker(ctx context.Context) {
	for c.processNextWorkItem(ctx) {
	}
}

// processNextWorkItem waits for a key and looks at its Foo. It is false when there will be none.
func (c *Controller) processNextWorkItem(ctx context.Context) bool {
	key, shutdown := c.workqueue.Get()
	if shutdown {
		return false
	}
	defer c.workqueue.Done(key) // until then, no other worker gets this key

	if err := c.syncHandler(ctx, key); err != nil {
		utilruntime.HandleErrorWithContext(ctx, err, "Will try again", "foo", key)
		c.workqueue.AddRateLimited(key) // later and later; the post leaves this line out
		return true
	}
	c.workqueue.Forget(key) // the next failure is a first one again
	return true
}
