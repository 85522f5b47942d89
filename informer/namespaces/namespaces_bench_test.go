// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	goruntime "runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/apitest"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/freshness"
	"example.com/informerstack/internal/tools/measure"
	"example.com/informerstack/reflector"
	"example.com/informerstack/reflector/wire"
)

const (
	benchServerOn   = "INFORMERSTACK_NAMESPACES_SERVER" // set in the process that serves
	benchNamespaces = 2000
	benchObjects    = 10 // in each namespace

	benchClusterAbove = 50
)

// BenchmarkNamespaces measures the informers of ConfigMaps in the first namespaces of a cluster of
// 2,000, with ten ConfigMaps of 1 kB in each, from Run until all have synced. The server is a
// separate process.
//
//	impl=ours        one informer of this package
//	impl=switch      the same, with ClusterAbove 50: until the whole cluster is watched
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
		for _, impl := range []string{"ours", "switch", "client-go", "cluster"} {
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
	case "ours", "switch":
		var options Options
		fromCluster := 0
		if impl == "switch" {
			options.ClusterAbove = benchClusterAbove
		}
		if impl == "switch" && count > benchClusterAbove {
			fromCluster = count
		}
		for i := range count {
			options.Namespaces = append(options.Namespaces, benchNamespace(i))
		}
		maps := New[*corev1.ConfigMap](client, "configmaps", options)
		return func(b *testing.B) {
			require.NoError(b, informer.WaitForSync(b.Context(), maps))
			require.Len(b, maps.Indexer().ListKeys(), want)
			before := 0
			require.Eventually(b, func() bool { // the connections have ended, too
				goroutines := goruntime.NumGoroutine()
				isStable := goroutines == before
				before = goroutines
				return isStable && maps.ClusterStatus().Namespaces == fromCluster
			}, time.Minute, 500*time.Millisecond)
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

// BenchmarkFeed_ForeignEvent measures an event of a namespace that is not in the set, from the
// bytes of the cluster's watch until it is dropped: a ConfigMap of 1 kB, in JSON.
func BenchmarkFeed_ForeignEvent(b *testing.B) {
	m := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "foreign", Name: "settings"},
		Data:       map[string]string{"settings": strings.Repeat("0123456789abcdef", 50)},
	}
	m.ResourceVersion = "2"
	object, err := json.Marshal(m)
	require.NoError(b, err)
	event := fmt.Appendf(nil, `{"type":"MODIFIED","object":%s}`, object)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	events := &repeated{event: event, left: b.N, ended: make(chan struct{})}
	newObject := func() runtime.Object { return &corev1.ConfigMap{} }
	set := newSet(func(string) reflector.ListerWatcher {
		return &reflector.ListWatch{WatchFuncWithContext: func(
			context.Context, metav1.ListOptions,
		) (watch.Interface, error) {
			return wire.ReadWatch(events, newObject, wire.Options{}), nil
		}}
	}, Options{ClusterAbove: 1})
	set.run = run{ctx: ctx, example: &corev1.ConfigMap{}}
	f := newFeed(set.cluster)
	f.cancel = cancel
	f.tracker.Note(freshness.Handover{Kind: freshness.List, ResourceVersion: "1"})
	b.SetBytes(int64(len(event)))
	b.ReportAllocs()
	b.ResetTimer()
	go f.reflector.Run(ctx)
	<-events.ended
}

// repeated is a body with one event, many times. Then it ends.
type repeated struct {
	event []byte
	rest  []byte
	left  int
	ended chan struct{}
}

func (r *repeated) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		if r.left == 0 {
			close(r.ended)
			return 0, io.EOF
		}
		r.left--
		r.rest = r.event
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

func (r *repeated) Close() error { return nil }

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
