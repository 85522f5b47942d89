// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	goruntime "runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/apitest"
	"example.com/informerstack/internal/tools/measure"
	"example.com/informerstack/reflector"
	"example.com/informerstack/reflector/wire"
	"example.com/informerstack/store"
)

const (
	syncPods     = 50_000
	syncServerOn = "INFORMERSTACK_SYNC_SERVER" // set in the process that serves the pods
)

// BenchmarkInitialSync measures a new informer with the namespace index and one handler, from Run
// until the handler was notified of 50,000 pods of about 3 kB, which arrive as JSON over HTTP. Like
// most programs it strips managedFields. The server is a separate process.
//
// In mode=list the first state is one LIST, which ours decodes while it arrives. In mode=watchlist
// a watch streams it, which is the default of both implementations.
//
//	B/op               all allocated bytes
//	peak-heap-B        the largest heap, including garbage, with the usual GOGC
//	peak-live-B        the most that any garbage collection found reachable, with one collection
//	                   for each tenth by which the heap grew; measured in a separate sync, not
//	                   timed
//	steady-live-B      the reachable bytes after the sync
//	peak/steady        peak-live-B / steady-live-B
//
// All but B/op are relative to the values before the sync.
func BenchmarkInitialSync(b *testing.B) {
	client := syncClient(b, startSyncServer(b))
	for _, mode := range []string{"list", "watchlist"} {
		for _, impl := range []string{ours, clientGo} {
			b.Run(fmt.Sprintf("mode=%s/impl=%s", mode, impl), func(b *testing.B) {
				sync := func() (stop func()) {
					return initialSync(b, newSyncSubject(mode, impl, client))
				}
				b.ReportAllocs()
				var inUse int64
				for b.Loop() {
					b.StopTimer()
					before := measure.Live()
					var stop func()
					b.StartTimer()
					inUse = max(inUse, measure.HeapInUse(func() { stop = sync() })-before)
					b.StopTimer()
					stop()
					b.StartTimer()
				}
				before := measure.Live()
				var stop func()
				peak := measure.Peak(func() { stop = sync() }) - before
				steady := measure.Live() - before
				stop()
				b.ReportMetric(float64(inUse), "peak-heap-B")
				b.ReportMetric(float64(peak), "peak-live-B")
				b.ReportMetric(float64(steady), "steady-live-B")
				b.ReportMetric(float64(peak)/float64(steady), "peak/steady")
			})
		}
	}
}

// initialSync runs informer until its handler has synced. The informer keeps running until stop is
// called.
func initialSync(b *testing.B, informer subject) (stop func()) {
	added := 0
	handle, err := informer.addHandler(ResourceEventHandlerFuncs{
		AddFunc: func(any) { added++ },
	}, HandlerOptions{})
	require.NoError(b, err)
	stop = background(informer.run)
	for !handle.HasSynced() {
		time.Sleep(time.Millisecond)
	}
	require.Equal(b, syncPods, added)
	return stop
}

func newSyncSubject(mode, impl string, client rest.Interface) subject {
	streamed := mode == "watchlist"
	if impl == ours {
		lw := wire.NewListWatch(client, "pods", "",
			func() runtime.Object { return &corev1.Pod{} }, wire.Options{})
		return ourSubject{NewSharedIndexInformer(lw, &corev1.Pod{}, Options{
			Indexers: store.Indexers{store.NamespaceIndex: store.MetaNamespaceIndexFunc},
			Reflector: reflector.Options{
				UseWatchList: &streamed, Transform: stripManagedFields,
			},
		})}
	}
	var lw cache.ListerWatcher = cache.NewListWatchFromClient(client, "pods", "",
		fields.Everything())
	if !streamed {
		all := cache.ToListerWatcherWithContext(lw)
		lw = listFirst{&reflector.ListWatch{
			ListWithContextFunc: all.ListWithContext, WatchFuncWithContext: all.WatchWithContext,
		}}
	}
	informer := cache.NewSharedIndexInformer(lw, &corev1.Pod{}, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	_ = informer.SetTransform(stripManagedFields) // fails only after the start
	return theirSubject{informer}
}

func stripManagedFields(obj any) (any, error) {
	m, err := meta.Accessor(obj)
	if err == nil {
		m.SetManagedFields(nil)
	}
	return obj, err
}

func syncClient(b *testing.B, url string) rest.Interface {
	config := &rest.Config{Host: url, QPS: -1}
	config.ContentType = runtime.ContentTypeJSON
	client, err := kubernetes.NewForConfig(config)
	require.NoError(b, err)
	return client.CoreV1().RESTClient()
}

// startSyncServer starts this program as a server of the pods until b ends. It returns the URL.
func startSyncServer(b *testing.B) string {
	program, err := os.Executable()
	require.NoError(b, err)
	server := exec.Command(program)
	server.Env = append(os.Environ(), syncServerOn+"=1", "GOGC=400")
	return measure.StartServer(b, server)
}

// serveSync serves the pods, prints its URL, and exits when stdin is closed, at the latest when its
// parent process exits.
func serveSync() {
	server := apitest.NewServer(apitest.Options{AnyNamespace: true})
	var creators sync.WaitGroup
	workers := goruntime.GOMAXPROCS(0)
	for first := range workers {
		creators.Go(func() {
			for i := first; i < syncPods; i += workers {
				if err := server.Create(syncPod(i)); err != nil {
					panic(err)
				}
			}
		})
	}
	creators.Wait()
	if err := server.Start(); err != nil {
		panic(err)
	}
	fmt.Println(server.URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
	server.Close()
}

const syncManagedFields = "" +
	`{"f:metadata":{"f:annotations":{".":{},"f:checksum/config":{}},"f:generateName":{},` +
	`"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}},"f:ownerReferences":{".":{},` +
	`"k:{\"uid\":\"5b0c8bd4\"}":{}}},` +
	`"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:env":{},"f:image":{},` +
	`"f:imagePullPolicy":{},"f:name":{},"f:ports":{},"f:resources":{},` +
	`"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},"f:dnsPolicy":{},` +
	`"f:enableServiceLinks":{},"f:restartPolicy":{},"f:schedulerName":{},` +
	`"f:securityContext":{},"f:terminationGracePeriodSeconds":{}}}`

// syncPod is measure.Pod with the fields that make it 3 kB of JSON.
func syncPod(i int) *corev1.Pod {
	pod := measure.Pod(i)
	yes := true
	pod.ResourceVersion, pod.GenerateName = "", "app-7c5ddbdf54-"
	pod.Spec.SchedulerName = "default-scheduler"
	pod.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "app-7c5ddbdf54", UID: "5b0c8bd4",
		Controller: &yes,
	}}
	//lint:ignore SA1019 what replaces it is newer than the oldest client-go this compiles with
	pod.ManagedFields[0].FieldsV1.Raw = []byte(syncManagedFields)
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
		})
	}
	pod.Spec.Containers[0].Args = []string{"--config=/etc/app/config.yaml", "--v=2"}
	return pod
}
