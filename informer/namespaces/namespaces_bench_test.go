// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/apitest"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/measure"
)

const (
	benchServerOn   = "INFORMERSTACK_NAMESPACES_SERVER" // set in the process that serves
	benchNamespaces = 2000
	benchObjects    = 10 // in each namespace
)

// BenchmarkNamespaces measures the informers of ConfigMaps in the first namespaces of a cluster of
// 2,000, with ten ConfigMaps of 1 kB in each, from Run until all have synced. The server is a
// separate process.
//
//	impl=ours        one informer of this package
//	impl=client-go   one informer of client-go for each namespace
//	impl=cluster     one informer of package informer for the whole cluster, whatever is needed
//
//	requests         LISTs and WATCHes until then
//	goroutines       of the process, with those of its connections, after that
//	live-B           the reachable bytes after that
func BenchmarkNamespaces(b *testing.B) {
	program, err := os.Executable()
	require.NoError(b, err)
	server := exec.Command(program)
	server.Env = append(os.Environ(), benchServerOn+"=1")
	url := measure.StartServer(b, server)
	for _, count := range []int{1, 100, 1000} {
		for _, impl := range []string{"ours", "client-go", "cluster"} {
			b.Run(fmt.Sprintf("namespaces=%d/impl=%s", count, impl), func(b *testing.B) {
				for b.Loop() {
					b.StopTimer()
					measureNamespaces(b, url, impl, count)
				}
			})
		}
	}
}

func measureNamespaces(b *testing.B, url, impl string, count int) {
	var requests atomic.Int64
	config := &rest.Config{Host: url, QPS: -1}
	config.ContentType = "application/json"
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	config.Transport = counting{transport, &requests}
	client, err := kubernetes.NewForConfig(config)
	require.NoError(b, err)
	goroutines, live := goruntime.NumGoroutine(), measure.Live()
	ctx, cancel := context.WithCancel(b.Context())
	b.StartTimer()
	wait, run := benchSubject(client.CoreV1().RESTClient(), impl, count)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		run(ctx)
	}()
	wait(b)
	b.StopTimer()
	b.ReportMetric(float64(requests.Load()), "requests")
	b.ReportMetric(float64(goruntime.NumGoroutine()-goroutines), "goroutines")
	b.ReportMetric(float64(measure.Live()-live), "live-B")
	cancel()
	<-ended
	transport.CloseIdleConnections()
	b.StartTimer()
}

// benchSubject returns the informers, a function that waits until they hold everything, and one
// that runs them.
func benchSubject(
	client rest.Interface, impl string, count int,
) (wait func(b *testing.B), run func(context.Context)) {
	want := count * benchObjects
	switch impl {
	case "ours":
		var options Options
		for i := range count {
			options.Namespaces = append(options.Namespaces, benchNamespace(i))
		}
		maps := New[*corev1.ConfigMap](client, "configmaps", options)
		return func(b *testing.B) {
			require.NoError(b, informer.WaitForSync(b.Context(), maps))
			require.Len(b, maps.Indexer().ListKeys(), want)
		}, maps.Run
	case "cluster":
		maps := informer.New[*corev1.ConfigMap](client, "configmaps", informer.Options{})
		return func(b *testing.B) {
			require.NoError(b, informer.WaitForSync(b.Context(), maps))
			require.Len(b, maps.Indexer().ListKeys(), benchNamespaces*benchObjects)
		}, maps.Run
	}
	var informers []cache.SharedIndexInformer
	var synced []cache.InformerSynced
	for i := range count {
		lw := cache.NewListWatchFromClient(client, "configmaps", benchNamespace(i),
			fields.Everything())
		one := cache.NewSharedIndexInformer(lw, &corev1.ConfigMap{}, 0,
			cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		informers, synced = append(informers, one), append(synced, one.HasSynced)
	}
	wait = func(b *testing.B) {
		if !cache.WaitForCacheSync(b.Context().Done(), synced...) {
			b.Fatal("the informers have not synced")
		}
	}
	run = func(ctx context.Context) {
		ended := make(chan struct{})
		for _, one := range informers {
			go func() {
				one.RunWithContext(ctx)
				ended <- struct{}{}
			}()
		}
		for range informers {
			<-ended
		}
	}
	return wait, run
}

func benchNamespace(i int) string { return fmt.Sprintf("tenant-%04d", i) }

// counting counts requests.
type counting struct {
	http.RoundTripper
	requests *atomic.Int64
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

// serveBench serves the namespaces, prints its URL, and exits when stdin is closed.
func serveBench() {
	server := apitest.NewServer(apitest.Options{AnyNamespace: true})
	for i := range benchNamespaces {
		for k := range benchObjects {
			m := &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{
					Namespace: benchNamespace(i), Name: fmt.Sprintf("settings-%d", k),
				},
				Data: map[string]string{"settings": strings.Repeat("0123456789abcdef", 50)},
			}
			if err := server.Create(m); err != nil {
				panic(err)
			}
		}
	}
	if err := server.Start(); err != nil {
		panic(err)
	}
	fmt.Println(server.URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
	server.Close()
}
