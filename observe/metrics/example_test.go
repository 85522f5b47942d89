// SPDX-License-Identifier: Apache-2.0

package metrics_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/informer"
	"example.com/informerstack/observe/metrics"
	"example.com/informerstack/reflector"
	"example.com/informerstack/workqueue"
)

// print prints the lines of a scrape that begin with prefix.
func print(registry *prometheus.Registry, prefix string) {
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).
		ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(answer.Body.String()) {
		if strings.HasPrefix(line, prefix) {
			fmt.Print(line)
		}
	}
}

// A queue has metrics if it has a name and a provider. When it is shut down they are gone.
func ExampleMetrics_Workqueue() {
	registry := prometheus.NewRegistry()
	all, err := metrics.New(registry)
	if err != nil {
		panic(err)
	}
	queue := workqueue.NewTypedRateLimitingQueue(
		workqueue.DefaultTypedControllerRateLimiter[string](),
		workqueue.Config[string]{Metrics: all.Workqueue("deployments")},
	)
	queue.Add("default/web")
	queue.Add("default/web") // ignored: it is queued
	queue.Add("default/db")
	print(registry, "workqueue_adds")
	queue.ShutDown()
	print(registry, "workqueue_adds")
	// Output:
	// workqueue_adds_total{name="deployments"} 2
}

// Options puts hooks into an informer, Follow reads the rest from it at each scrape.
func ExampleInformer() {
	registry := prometheus.NewRegistry()
	all, err := metrics.New(registry)
	if err != nil {
		panic(err)
	}
	pods, err := all.Informer("web-controller", corev1.SchemeGroupVersion.WithResource("pods"))
	if err != nil {
		panic(err)
	}
	lw := &reflector.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.PodList{
				ListMeta: metav1.ListMeta{ResourceVersion: "7"},
				Items:    make([]corev1.Pod, 1),
			}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewFake(), nil
		},
	}
	never := false
	i := informer.NewSharedIndexInformer(lw, &corev1.Pod{}, pods.Options(informer.Options{
		Reflector: reflector.Options{UseWatchList: &never},
	}))
	pods.Follow(i)

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { i.Run(ctx); close(ended) }()
	<-i.HasSyncedChecker().Done()
	print(registry, "informer_objects")
	print(registry, "reflector_lists")
	stop()
	<-ended
	print(registry, "informer_objects") // nothing
	// Output:
	// informer_objects{group="",name="web-controller",resource="pods",version="v1"} 1
	// reflector_lists_total{group="",name="web-controller",resource="pods",version="v1"} 1
}
