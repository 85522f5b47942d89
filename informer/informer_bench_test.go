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
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

const benchObjects = 1000

// benchServer returns a server of pods with a watch, which sends the events.
func benchServer(pods int) (lw listFirst, events *watch.FakeWatcher) {
	var all []corev1.Pod
	for i := range pods {
		all = append(all, *benchPod(i, i+1))
	}
	lw, events = staying("1000", all...), watch.NewFakeWithChanSize(100, false)
	lw.WatchFuncWithContext = func(context.Context, metav1.ListOptions) (watch.Interface, error) {
		return events, nil
	}
	return lw, events
}

func benchPod(i, rv int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: fmt.Sprint("pod-", i), UID: "u",
		ResourceVersion: strconv.Itoa(rv),
	}}
}

func benchSubject(impl string, s listFirst) subject {
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
	server, sent := benchServer(benchObjects)
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
	defer background(informer.run)()
	for !informer.HasSynced() {
		time.Sleep(time.Millisecond)
	}
	pods := make([]*corev1.Pod, 2*benchObjects) // two states of each object, alternating
	for i := range pods {
		pods[i] = benchPod(i%benchObjects, benchObjects+1+i)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		sent.Modify(pods[i%len(pods)])
	}
	delivered.Wait()
	b.StopTimer()
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
	server, _ := benchServer(1)
	informer := benchSubject(impl, server)
	defer background(informer.run)()
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
}

// used returns the live heap and stacks, and the number of goroutines.
func used() (bytes int64, goroutines int) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse), runtime.NumGoroutine()
}
