// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/informer"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

// handWritten is the controller that posts show, with their names: a handler puts keys into a
// queue, workers take them, look the object up, and try again later if they fail. controller.New is
// this loop, finished.
type handWritten struct {
	podInformer informer.SharedIndexInformer
	podsLister  store.Lister[*corev1.Pod]
	workqueue   *workqueue.TypedRateLimitingQueue[string]
	sync        func(pod *corev1.Pod) error
	gone        func(key string)
}

func newHandWritten(lw reflector.ListerWatcher) (*handWritten, error) {
	pods := informer.NewSharedIndexInformer(lw, &corev1.Pod{}, informer.Options{
		Indexers:  store.Indexers{store.NamespaceIndex: store.MetaNamespaceIndexFunc},
		Reflector: reflector.Options{UseWatchList: new(bool)}, // LIST, then WATCH
	})
	c := &handWritten{
		podInformer: pods,
		podsLister: store.NewLister[*corev1.Pod](pods.GetIndexer(),
			schema.GroupResource{Resource: "pods"}),
		workqueue: workqueue.NewTypedRateLimitingQueue(
			workqueue.DefaultTypedControllerRateLimiter[string](),
			workqueue.Config[string]{},
		),
	}
	_, err := pods.AddEventHandler(informer.ResourceEventHandlerFuncs{
		AddFunc:    c.enqueue,
		UpdateFunc: func(_, newObj any) { c.enqueue(newObj) },
		DeleteFunc: c.enqueue,
	})
	return c, err
}

// enqueue is all that a handler does: it is fast, and cannot fail.
func (c *handWritten) enqueue(obj any) {
	key, err := store.DeletionHandlingMetaNamespaceKeyFunc(obj) // a delete may be a tombstone
	if err != nil {
		utilruntime.HandleError(err)
		return
	}
	c.workqueue.Add(key)
}

func (c *handWritten) Run(ctx context.Context, threadiness int) error {
	var running sync.WaitGroup
	defer running.Wait()
	defer c.workqueue.ShutDown()
	running.Go(func() { c.podInformer.Run(ctx) })
	if err := informer.WaitForSync(ctx, c.podInformer); err != nil {
		return err
	}
	for range threadiness {
		running.Go(func() { wait.UntilWithContext(ctx, c.runWorker, time.Second) })
	}
	<-ctx.Done()
	return nil
}

func (c *handWritten) runWorker(context.Context) {
	for c.processNextWorkItem() {
	}
}

func (c *handWritten) processNextWorkItem() bool {
	key, shutdown := c.workqueue.Get()
	if shutdown {
		return false
	}
	defer c.workqueue.Done(key) // in any case
	if err := c.syncHandler(key); err != nil {
		fmt.Printf("%s: %v, failure %d\n", key, err, c.workqueue.NumRequeues(key)+1)
		c.workqueue.AddRateLimited(key)
		return true
	}
	c.workqueue.Forget(key)
	return true
}

func (c *handWritten) syncHandler(key string) error {
	namespace, name, err := store.SplitMetaNamespaceKey(key)
	if err != nil {
		utilruntime.HandleError(err)
		return nil // trying again will not make it a key
	}
	pod, err := c.podsLister.ByNamespace(namespace).Get(name)
	if apierrors.IsNotFound(err) {
		c.gone(key)
		return nil
	}
	if err != nil {
		return err
	}
	return c.sync(pod)
}

// The loop that posts write by hand: the first try fails and is repeated, then the object is
// deleted.
func Example_handWritten() {
	ctx, stop := context.WithCancel(quiet())
	defer stop()
	podA := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       "NamespaceA",
			Name:            "PodA",
			ResourceVersion: "10245",
		},
	}
	server := watch.NewFake()
	c, err := newHandWritten(&reflector.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.PodList{
				ListMeta: metav1.ListMeta{ResourceVersion: "10245"},
				Items:    []corev1.Pod{podA},
			}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return server, nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	tries := 0
	c.sync = func(pod *corev1.Pod) error {
		if tries++; tries == 1 {
			return errors.New("not yet")
		}
		fmt.Println("synced", pod.Name)
		deleted := podA.DeepCopy()
		deleted.ResourceVersion = "10596"
		server.Delete(deleted)
		return nil
	}
	c.gone = func(key string) {
		fmt.Println(key, "is gone; failures counted:", c.workqueue.NumRequeues(key))
		stop()
	}
	fmt.Println(c.Run(ctx, 2))
	// Output:
	// NamespaceA/PodA: not yet, failure 1
	// synced PodA
	// NamespaceA/PodA is gone; failures counted: 0
	// <nil>
}
