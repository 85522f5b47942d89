// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

const benchObjects = 1000

// benchServer lists benchObjects pods. Its watch sends the events of the channel.
type benchServer struct {
	objects []*corev1.Pod
	events  chan watch.Event
}

func newBenchServer() *benchServer {
	s := &benchServer{events: make(chan watch.Event, 100)}
	for i := range benchObjects {
		s.objects = append(s.objects, benchPod(i, i+1))
	}
	return s
}

func benchPod(i, rv int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: fmt.Sprint("pod-", i), UID: "u",
		ResourceVersion: strconv.Itoa(rv),
	}}
}

func (s *benchServer) IsWatchListSemanticsUnSupported() bool { return true }

func (s *benchServer) ListWithContext(
	context.Context, metav1.ListOptions,
) (k8sruntime.Object, error) {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1000"}}
	for _, pod := range s.objects {
		list.Items = append(list.Items, *pod)
	}
	return list, nil
}

func (s *benchServer) WatchWithContext(
	context.Context, metav1.ListOptions,
) (watch.Interface, error) {
	return s, nil
}

func (s *benchServer) List(o metav1.ListOptions) (k8sruntime.Object, error) {
	return s.ListWithContext(context.Background(), o)
}
func (s *benchServer) Watch(o metav1.ListOptions) (watch.Interface, error) { return s, nil }
func (s *benchServer) ResultChan() <-chan watch.Event                      { return s.events }
func (s *benchServer) Stop()                                               {}

func benchSubject(impl string, s *benchServer) subject {
	if impl == clientGo {
		return theirSubject{cache.NewSharedIndexInformer(s, &corev1.Pod{}, 0, cache.Indexers{})}
	}
	var options Options
	options.InOrder = impl == oursRealFIFO
	return ourSubject{NewSharedIndexInformer(s, &corev1.Pod{}, options)}
}

// An operation is one event from the watch, delivered to all handlers.
func BenchmarkFanOut(b *testing.B) {
	for _, handlers := range []int{1, 10, 100} {
		for _, impl := range everyImpl {
			b.Run(fmt.Sprintf("handlers=%d/impl=%s", handlers, impl), func(b *testing.B) {
				benchFanOut(b, impl, handlers)
			})
		}
	}
}

func benchFanOut(b *testing.B, impl string, handlers int) {
	server := newBenchServer()
	informer := benchSubject(impl, server)
	var delivered sync.WaitGroup
	delivered.Add(handlers)
	for range handlers {
		updates := 0
		_, err := informer.addHandler(ResourceEventHandlerFuncs{UpdateFunc: func(any, any) {
			if updates++; updates == b.N {
				delivered.Done()
			}
		}}, HandlerOptions{})
		require.NoError(b, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { informer.run(ctx) })
	for !informer.HasSynced() {
		time.Sleep(time.Millisecond)
	}
	events := make([]watch.Event, 2*benchObjects) // two states of each object, alternating
	for i := range events {
		events[i] = watch.Event{
			Type: watch.Modified, Object: benchPod(i%benchObjects, benchObjects+1+i),
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		server.events <- events[i%len(events)]
	}
	delivered.Wait()
	b.StopTimer()
	cancel()
	run.Wait()
}

// BenchmarkIdleHandler measures the cost of a handler without events.
func BenchmarkIdleHandler(b *testing.B) {
	for _, impl := range everyImpl {
		b.Run("impl="+impl, func(b *testing.B) {
			for range b.N {
				benchIdle(b, impl)
			}
		})
	}
}

func benchIdle(b *testing.B, impl string) {
	const handlers = 1000
	server := newBenchServer()
	server.objects = server.objects[:1]
	informer := benchSubject(impl, server)
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { informer.run(ctx) })
	for !informer.HasSynced() {
		time.Sleep(time.Millisecond)
	}
	bytes, goroutines := used()
	last := make([]registration, 0, handlers)
	for range handlers {
		h, err := informer.addHandler(ResourceEventHandlerFuncs{}, HandlerOptions{})
		require.NoError(b, err)
		last = append(last, h)
	}
	for _, h := range last {
		for !h.HasSynced() {
			time.Sleep(time.Millisecond)
		}
	}
	time.Sleep(10 * time.Millisecond) // until the goroutines of the sync have ended
	bytesAfter, goroutinesAfter := used()
	b.ReportMetric(float64(bytesAfter-bytes)/handlers, "B/handler")
	b.ReportMetric(float64(goroutinesAfter-goroutines)/handlers, "goroutines/handler")
	cancel()
	run.Wait()
}

// used returns the live heap and stacks, and the number of goroutines.
func used() (bytes int64, goroutines int) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine()
}
