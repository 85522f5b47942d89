// SPDX-License-Identifier: Apache-2.0

package trace_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"example.com/informerstack/apitest"
	"example.com/informerstack/controller"
	"example.com/informerstack/deltafifo"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/observe/trace"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

// A program puts a decorator around each piece, and prints the way of a change. This sink prints
// what is the same in every run; trace.Text(os.Stdout, trace.TextOptions{}) prints all.
func Example() {
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	config := newServer(ctx)
	show := func(e trace.Event) {
		fmt.Println(strings.TrimSpace(fmt.Sprintln(e.Hop, e.What, e.Key)))
	}

	client := kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient()
	maps := informer.New[*corev1.ConfigMap](client, "configmaps", informer.Options{
		WrapQueue:   func(q deltafifo.Queue) deltafifo.Queue { return trace.DeltaQueue(q, show) },
		WrapIndexer: func(i store.Indexer) store.Indexer { return trace.Indexer(i, show) },
	})
	reconcile := func(context.Context, string) (controller.Result, error) {
		stop() // one change is enough
		return controller.Result{}, nil
	}
	ctrl := controller.New("maps", trace.Reconcile(reconcile, show), controller.Options[string]{
		NewQueue: func(
			_ string, limiter workqueue.TypedRateLimiter[string],
		) workqueue.TypedRateLimitingInterface[string] {
			return trace.RateLimitingQueue(
				workqueue.NewTypedRateLimitingQueue(limiter, workqueue.Config[string]{}), show)
		},
		WaitFor: []controller.Synced{maps.HasSyncedChecker()},
	})
	handler := ctrl.Handler(store.DeletionHandlingMetaNamespaceKeyFunc)
	if _, err := maps.AddEventHandler(trace.EventHandler(handler, show)); err != nil {
		fmt.Println(err)
	}
	go maps.Run(ctx)
	if err := ctrl.Run(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// deltafifo Replace
	// deltafifo Pop default/settings
	// store Add default/settings
	// handler OnAdd default/settings
	// workqueue Add default/settings
	// workqueue Get default/settings
	// worker reconcile default/settings
	// worker reconciled default/settings
	// workqueue Forget default/settings
	// workqueue Done default/settings
}

// newServer starts a test server with one ConfigMap, which stops with ctx.
func newServer(ctx context.Context) *rest.Config {
	server := apitest.NewServer(apitest.Options{})
	if err := server.StartPipe(); err != nil {
		panic(err)
	}
	context.AfterFunc(ctx, server.Close)
	err := server.Create(&corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "settings"},
	})
	if err != nil {
		panic(err)
	}
	return &rest.Config{
		Host: server.URL, Transport: server.Transport(),
		ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	}
}

// With -v, selected examples print their output.
func TestMain(m *testing.M) { os.Exit(narrate.Run(m)) }
