// SPDX-License-Identifier: Apache-2.0

package controller_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"example.com/informerstack/controller"
	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

func pod(name, image string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Image: image}}},
	}
}

// The way of a change: handler, queue, worker, and for what cannot be cured, the dead letters.
func Example() {
	ctx, stop := context.WithCancel(quiet())
	pods := store.New(store.MetaNamespaceKeyFunc, store.Options{})
	attempts := 0

	reconcile := func(ctx context.Context, key string) (controller.Result, error) {
		obj, exists, err := pods.GetByKey(key)
		if err != nil || !exists {
			return controller.Result{}, err // gone: nothing to do
		}
		if obj.(*corev1.Pod).Spec.Containers[0].Image == "" {
			if attempts++; attempts == 3 {
				stop() // enough for an example
			}
			return controller.Result{}, errors.New("no image")
		}
		fmt.Println("reconciled", key)
		return controller.Result{}, nil
	}
	c := controller.New("example", reconcile, controller.Options[string]{
		MaxAttempts: 3,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[string](
			time.Millisecond,
			time.Second,
		),
		GracePeriod: time.Minute,
	})

	// An informer would do this.
	handler := c.Handler(store.DeletionHandlingMetaNamespaceKeyFunc)
	for _, obj := range []*corev1.Pod{pod("web", "nginx"), pod("broken", "")} {
		_ = pods.Add(obj)
		handler.OnAdd(obj, true)
	}

	fmt.Println("stopped:", c.Run(ctx))
	for _, letter := range c.DeadLetters().List() {
		fmt.Println(letter.Key, letter.Reason, letter.Attempts, letter.Last.Err)
	}
	// Output:
	// reconciled ns/web
	// stopped: <nil>
	// ns/broken MaxAttempts 3 no image
}

// A key may be any comparable type. Two equal values are one key; two pointers to equal values
// would be two.
func ExampleNew() {
	type request struct{ Namespace, Name string }
	ctx, stop := context.WithCancel(quiet())
	reconcile := func(_ context.Context, r request) (controller.Result, error) {
		fmt.Println(r.Namespace, r.Name)
		if r.Name == "last" {
			stop()
		}
		return controller.Result{}, nil
	}
	c := controller.New("requests", reconcile, controller.Options[request]{})
	c.Enqueue(request{"ns", "web"})
	c.Enqueue(request{"ns", "web"})
	c.Enqueue(request{"ns", "last"})
	fmt.Println(c.Run(ctx))
	// Output:
	// ns web
	// ns last
	// <nil>
}

// A terminal error is not tried again.
func ExampleTerminalError() {
	err := fmt.Errorf("parse spec: %w", controller.TerminalError(errors.New("no such field")))
	fmt.Println(errors.Is(err, controller.TerminalError(nil)), err)
	// Output: true parse spec: terminal error: no such field
}

// After the cause was repaired, all that was given up can be tried again.
func ExampleDeadLetters_ReplayAll() {
	ctx, stop := context.WithCancel(quiet())
	repaired := false
	var c *controller.Controller[string]
	c = controller.New("replay", func(_ context.Context, key string) (controller.Result, error) {
		switch {
		case key == "repair":
			repaired = true
			fmt.Println("replayed:", c.DeadLetters().ReplayAll())
		case !repaired:
			return controller.Result{}, controller.TerminalError(errors.New("quota exceeded"))
		default:
			fmt.Println("reconciled", key)
			stop()
		}
		return controller.Result{}, nil
	}, controller.Options[string]{})
	c.Enqueue("web")
	c.Enqueue("repair")
	_ = c.Run(ctx)
	// Output:
	// replayed: 1
	// reconciled web
}

// A copy that the server refused to write is stale until the cache has a newer one.
func ExampleWrites_Stale() {
	var writes controller.Writes[string]
	cached := pod("web", "nginx")
	cached.ResourceVersion = "7"
	// _, err := client.Update(ctx, cached, metav1.UpdateOptions{})
	// if apierrors.IsConflict(err) {
	writes.Conflicted(cached)
	fmt.Println(writes.Stale(cached))
	cached = cached.DeepCopy() // the watch brings what another writer wrote
	cached.ResourceVersion = "9"
	fmt.Println(writes.Stale(cached))
	// Output:
	// true
	// false
}

func quiet() context.Context { return klog.NewContext(context.Background(), klog.Logger{}) }

// With -v, selected examples print their output.
func TestMain(m *testing.M) { os.Exit(narrate.Run(m)) }
