// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"example.com/informerstack/apitest"
	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/observe/trace"
	"example.com/informerstack/reflector"
	"example.com/informerstack/reflector/wire"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

func init() {
	// The second handler waits, by the clock of whichever bubble had the last error.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
}

// world is a laboratory with its pipeline and server, in one bubble.
type world struct {
	t      *testing.T
	server *apitest.Server
	lab    *Lab
	starts int  // of the pipeline
	writer bool // its reconcile writes, as that of the program does
	leave  func()
	lag    time.Duration // before Reset's restore

	mu      sync.Mutex
	writes  int
	rate    float64
	objects int
	unfault func() // ends the random faults; nil without them
}

// story runs body in a bubble, with an open page. The first list has been delivered by then.
//
// The time of a bubble stops while a goroutine waits for a mutex. A held event can hold one, for
// example that of a DeltaFIFO during Pop. So body makes no second change while events are held.
func story(t *testing.T, body func(w *world)) {
	synctest.Test(t, func(t *testing.T) {
		server := apitest.NewServer(apitest.Options{})
		require.NoError(t, server.StartPipe())
		defer server.Close()
		w := &world{t: t, server: server, rate: 2, objects: 2}
		w.lab = New(Options{
			Version: "test", Resource: "configmaps", Server: server, Workload: w,
			Settings: Settings{Queue: "deltafifo", WatchList: true, Workers: 2, Attempts: 10},
		})
		w.lab.scene.quick = true
		config := &rest.Config{Host: server.URL, Transport: server.Transport(), QPS: -1}
		require.NoError(t, w.lab.Elect(config))
		for _, name := range []string{"a", "b"} {
			require.NoError(t, w.Create("default/"+name))
		}
		_, w.leave = w.lab.stream.open()
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), logr.Discard()))
		var running sync.WaitGroup
		running.Go(func() {
			assert.NoError(t, w.lab.Run(ctx, func(ctx context.Context, s Settings) error {
				w.starts++
				return w.pipeline(ctx, config, s)
			}))
		})
		w.after(time.Second)
		body(w)
		w.lab.Close()
		cancel()
		running.Wait()
	})
}

// chapter is a subtest with a story of its own.
func chapter(t *testing.T, name string, body func(t *testing.T, w *world)) {
	t.Run(name, func(t *testing.T) {
		story(t, func(w *world) { body(t, w) })
	})
}

// pipeline runs the pieces with these settings until ctx is done.
func (w *world) pipeline(ctx context.Context, config *rest.Config, s Settings) error {
	sink := w.lab.Sink(func(trace.Event) {})
	traced := rest.CopyConfig(config)
	traced.ContentType = "application/json"
	traced.Wrap(trace.Writes(sink))
	var client rest.Interface = kubernetes.NewForConfigOrDie(traced).CoreV1().RESTClient()
	resource, newItem := "configmaps", func() runtime.Object { return &corev1.ConfigMap{} }
	if s.Custom {
		resource, newItem = CustomResource.Resource, func() runtime.Object {
			obj := &unstructured.Unstructured{}
			obj.SetGroupVersionKind(CustomKind)
			return obj
		}
		client = customClient(traced)
	}
	lw := func(namespace string) reflector.ListerWatcher {
		return trace.ListerWatcher(
			wire.NewListWatch(client, resource, namespace, newItem, wire.Options{}), sink)
	}
	options, follow, err := w.lab.FollowKind(config, informer.Options{
		Indexers:  store.Indexers{store.NamespaceIndex: store.MetaNamespaceIndexFunc},
		Reflector: w.lab.ReflectorOptions(reflector.Options{UseWatchList: &s.WatchList}),
		InOrder:   s.Queue == "realfifo",
		WrapQueue: w.lab.WrapQueue(sink),
		WrapIndexer: func(indexer store.Indexer) store.Indexer {
			return trace.Indexer(indexer, sink)
		},
	})
	require.NoError(w.t, err)
	objects := w.lab.NewInformer(lw, newItem(), options)
	writes := w.lab.Writes()
	reconcile := func(_ context.Context, key string) (controller.Result, error) {
		return controller.Result{}, w.reconcile(objects.GetIndexer(), writes, key)
	}
	ctrl := controller.New("story", trace.Reconcile(w.lab.Reconcile(reconcile), sink),
		controller.Options[string]{
			Workers: s.Workers, Lead: w.lab.Lead, MaxAttempts: s.Attempts,
			RateLimiter: w.lab.RateLimiter(), LowPriority: LowPriority,
			WaitFor: []controller.Synced{objects.HasSyncedChecker()},
			NewQueue: func(
				_ string, limiter workqueue.TypedRateLimiter[string],
			) workqueue.TypedRateLimitingInterface[string] {
				config := w.lab.WorkqueueConfig(workqueue.Config[string]{})
				return w.lab.WrapWorkqueue(trace.NewRateLimitingQueue(limiter, config, sink))
			},
		})
	toQueue := w.lab.ControllerHandler(ctrl.Handler(store.DeletionHandlingMetaNamespaceKeyFunc))
	first, err := objects.AddEventHandler(trace.EventHandler(toQueue, sink))
	require.NoError(w.t, err)
	audit := w.lab.Handler("audit", informer.ResourceEventHandlerFuncs{})
	second, err := objects.AddEventHandlerWithOptions(audit,
		informer.HandlerOptions{SkipPanics: true})
	require.NoError(w.t, err)
	w.lab.Show(Pieces{objects, ctrl, []Handler{{"controller", first}, {"audit", second}}})
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { follow(ctx) })
	running.Go(func() { objects.Run(ctx) })
	return ctrl.Run(ctx)
}

// customClient returns a client of the custom kind.
func customClient(config *rest.Config) rest.Interface {
	config = dynamic.ConfigFor(config)
	version := CustomKind.GroupVersion()
	config.GroupVersion, config.APIPath = &version, "/apis"
	client, err := rest.RESTClientFor(config)
	if err != nil {
		panic(err)
	}
	return client
}

// reconcile writes the object once after each of its changes, unless it has changed since.
func (w *world) reconcile(
	objects store.Indexer, writes *controller.Writes[string], key string,
) error {
	stored, exists, err := objects.GetByKey(key)
	configMap, isConfigMap := stored.(*corev1.ConfigMap)
	if !w.writer || !exists || !isConfigMap {
		return err
	}
	obj := configMap.DeepCopy()
	if obj.Annotations["seen"] == obj.Data["write"] {
		return nil
	}
	obj.Annotations = map[string]string{"seen": obj.Data["write"]}
	send := func() (metav1.Object, error) { return obj, w.server.Update(obj) }
	if writes == nil {
		_, err = send()
	} else {
		err = writes.Send(key, controller.Write{Copy: configMap, Locked: true}, send)
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	return nil
}

// do sends a command as the page does. It returns the error, or "".
func (w *world) do(format string, args ...any) string {
	body := fmt.Sprintf(format, args...)
	r := httptest.NewRequest(http.MethodPost, "http://localhost/lab/command",
		strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Lab-Token", w.lab.hello.Token)
	answer := httptest.NewRecorder()
	w.lab.ServeHTTP(answer, r)
	synctest.Wait()
	var refusal struct{ Error string }
	require.NoError(w.t, json.Unmarshal(answer.Body.Bytes(), &refusal))
	assert.Equal(w.t, answer.Code == http.StatusOK, refusal.Error == "", body)
	return refusal.Error
}

// mustDo sends a command that is not refused.
func (w *world) mustDo(format string, args ...any) {
	w.t.Helper()
	assert.Empty(w.t, w.do(format, args...), format)
}

// frame returns the present frame.
func (w *world) frame() Frame {
	synctest.Wait()
	return w.lab.frame(time.Now())
}

// lesson is the field Lesson of a frame, without the work for the rest of it.
func (w *world) lesson() *LessonView {
	synctest.Wait()
	return w.lab.player.state()
}

// keys returns the keys of the objects on the server.
func (w *world) keys() (keys []string) {
	all, err := w.server.List("configmaps", "")
	require.NoError(w.t, err)
	for _, obj := range all {
		keys = append(keys, obj.GetNamespace()+"/"+obj.GetName())
	}
	return keys
}

// after lets fake time pass.
func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// The world is also the workload.

func (w *world) Create(key string) error { return w.server.Create(w.named(key)) }
func (w *world) Delete(key string) error { return w.server.Delete(w.named(key)) }

func (w *world) Rate() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rate
}

func (w *world) Objects() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.objects
}

func (w *world) Faults() bool { return w.unfault != nil }

func (w *world) SetFaults(on bool) {
	if w.unfault != nil {
		w.unfault()
		w.unfault = nil
	}
	if on {
		w.unfault = w.server.Faults().Random(1, apitest.Rates{
			ServerError: 0.3, Cut: 0.5, Expire: 0.2, MaxDelay: 50 * time.Millisecond,
		})
	}
}

func (w *world) Change(key string) error {
	obj := w.named(key)
	data := obj.Data
	for {
		if err := w.server.Get(obj); err != nil {
			return err
		}
		obj.Data = data
		if err := w.server.Update(obj); !apierrors.IsConflict(err) {
			return err
		}
	}
}

func (w *world) Set(rate float64, objects int) error {
	w.hold(rate, objects)
	for i := range max(0, objects-2) {
		err := w.Create(fmt.Sprintf("default/more-%d", i))
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

func (w *world) Reset(objects int) (restore func() error, err error) {
	rate, number, former := w.Rate(), w.Objects(), w.removeAll()
	w.hold(0, objects)
	for i := range objects {
		require.NoError(w.t, w.Create(fmt.Sprintf("default/settings-%d", i+1)))
	}
	return func() error {
		time.Sleep(w.lag)
		w.removeAll()
		for i := range former {
			former[i].SetResourceVersion("")
			former[i].SetUID("")
			require.NoError(w.t, w.server.Create(&former[i]))
		}
		w.hold(rate, number)
		return nil
	}, nil
}

func (w *world) hold(rate float64, objects int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rate, w.objects = rate, objects
}

func (w *world) removeAll() []unstructured.Unstructured {
	all, err := w.server.List("configmaps", "")
	require.NoError(w.t, err)
	for i := range all {
		require.NoError(w.t, w.server.Delete(&all[i]))
	}
	return all
}

// named returns a ConfigMap with new data.
func (w *world) named(key string) *corev1.ConfigMap {
	namespace, name, _ := strings.Cut(key, "/")
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	meta.Labels = map[string]string{"team": "red"}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	data := map[string]string{"write": fmt.Sprint(w.writes)}
	return &corev1.ConfigMap{ObjectMeta: meta, Data: data}
}
