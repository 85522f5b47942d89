// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	goruntime "runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
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
	ctx, cancel := context.WithCancel(context.Background())
	var run sync.WaitGroup
	run.Go(func() { informer.run(ctx) })
	for !handle.HasSynced() {
		time.Sleep(time.Millisecond)
	}
	require.Equal(b, syncPods, added)
	return func() {
		cancel()
		run.Wait()
	}
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
		lw = withoutWatchList{cache.ToListerWatcherWithContext(lw)}
	}
	informer := cache.NewSharedIndexInformer(lw, &corev1.Pod{}, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	_ = informer.SetTransform(stripManagedFields) // fails only after the start
	return theirSubject{informer}
}

// withoutWatchList makes client-go's reflector list.
type withoutWatchList struct{ cache.ListerWatcherWithContext }

func (withoutWatchList) IsWatchListSemanticsUnSupported() bool { return true }

func (lw withoutWatchList) List(options metav1.ListOptions) (runtime.Object, error) {
	return lw.ListWithContext(context.Background(), options)
}

func (lw withoutWatchList) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return lw.WatchWithContext(context.Background(), options)
}

func stripManagedFields(obj any) (any, error) {
	m, err := meta.Accessor(obj)
	if err == nil {
		m.SetManagedFields(nil)
	}
	return obj, err
}

func syncClient(b *testing.B, url string) rest.Interface {
	scheme := runtime.NewScheme()
	require.NoError(b, corev1.AddToScheme(scheme))
	content := rest.ContentConfig{
		GroupVersion:         &schema.GroupVersion{Version: "v1"},
		NegotiatedSerializer: serializer.NewCodecFactory(scheme).WithoutConversion(),
		ContentType:          runtime.ContentTypeJSON,
	}
	client, err := rest.RESTClientFor(&rest.Config{
		Host: url, APIPath: "/api", QPS: -1, ContentConfig: content,
	})
	require.NoError(b, err)
	return client
}

// startSyncServer starts this program as a server of the pods until b ends. It returns the URL.
func startSyncServer(b *testing.B) string {
	program, err := os.Executable()
	require.NoError(b, err)
	server := exec.Command(program)
	server.Env = append(os.Environ(), syncServerOn+"=1", "GOGC=400")
	server.Stderr = os.Stderr
	until, err := server.StdinPipe()
	require.NoError(b, err)
	out, err := server.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, server.Start())
	b.Cleanup(func() {
		require.NoError(b, until.Close())
		require.NoError(b, server.Wait())
	})
	url, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(b, err)
	return strings.TrimSpace(url)
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

// syncPod resembles a pod of a Deployment on a real cluster.
func syncPod(i int) *corev1.Pod {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	//lint:ignore SA1019 what replaces it is newer than the oldest client-go this compiles with
	managed := metav1.FieldsV1{Raw: []byte(syncManagedFields)}
	condition := func(kind corev1.PodConditionType) corev1.PodCondition {
		return corev1.PodCondition{
			Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now,
		}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	yes := true
	tolerate := func(key string) corev1.Toleration {
		return corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
		}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:    fmt.Sprintf("team-%d", i%50),
			Name:         fmt.Sprintf("app-7c5ddbdf54-%05d", i),
			GenerateName: "app-7c5ddbdf54-",
			Labels:       map[string]string{"app": "app", "pod-template-hash": "7c5ddbdf54"},
			Annotations: map[string]string{
				"checksum/config": "8f434346648f6b96df89dda901c5176b" +
					"10a6d83961dd3c1ac88b59b2dc327aa4",
			},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "app-7c5ddbdf54", UID: "5b0c8bd4",
				Controller: &yes,
			}},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "kube-controller-manager", Operation: "Update", APIVersion: "v1",
				Time: &now, FieldsType: "FieldsV1", FieldsV1: &managed,
			}},
		},
		Spec: corev1.PodSpec{
			NodeName: fmt.Sprintf("node-%d", i%500), ServiceAccountName: "default",
			RestartPolicy: corev1.RestartPolicyAlways, SchedulerName: "default-scheduler",
			Containers: []corev1.Container{{
				Name: "app", Image: "registry.example.com/team/app:v1.2.3",
				ImagePullPolicy: corev1.PullIfNotPresent,
				Args:            []string{"--config=/etc/app/config.yaml", "--v=2"},
				Env: []corev1.EnvVar{
					{Name: "REGION", Value: "eu-north-1"},
					{Name: "GREETING", Value: `two "quoted" words`},
				},
				Ports: []corev1.ContainerPort{
					{Name: "http", ContainerPort: 8080, Protocol: corev1.ProtocolTCP},
				},
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU:    resource.MustParse("100m"),
					corev1.ResourceMemory: resource.MustParse("128Mi"),
				}},
				VolumeMounts: []corev1.VolumeMount{{
					Name: "kube-api-access-x7l2k", ReadOnly: true,
					MountPath: "/var/run/secrets/kubernetes.io/serviceaccount",
				}},
			}},
			Tolerations: []corev1.Toleration{
				tolerate(corev1.TaintNodeNotReady), tolerate(corev1.TaintNodeUnreachable),
			},
		},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.1.2.3", HostIP: "192.168.1.2", StartTime: &now,
			QOSClass: corev1.PodQOSBurstable,
			Conditions: []corev1.PodCondition{
				condition(corev1.PodInitialized), condition(corev1.PodReady),
				condition(corev1.ContainersReady), condition(corev1.PodScheduled),
			},
			ContainerStatuses: []corev1.ContainerStatus{{
				Name: "app", Ready: true, Started: &yes, State: running,
				Image:       "registry.example.com/team/app:v1.2.3",
				ContainerID: "containerd://7a1fd0c7f5fbb0ef",
			}},
		},
	}
}
