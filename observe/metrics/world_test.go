// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"example.com/informerstack/apitest"
	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/internal/tools/testserver"
	"example.com/informerstack/reflector"
	"example.com/informerstack/reflector/wire"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = nil
	klog.LogToStderr(false)
	klog.SetLogger(klog.Logger{})
	os.Exit(narrate.Run(m))
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// world is the whole stack with metrics, against a server in the same bubble.
type world struct {
	t        *testing.T
	server   *testserver.Server
	metrics  *Metrics
	registry *prometheus.Registry

	maps     informer.SharedIndexInformer
	ofMaps   *Informer
	ctrl     *controller.Controller[string]
	failures map[string]int // how often the reconcile of a key still fails
	delay    time.Duration  // of each call of the handler
	log      *narrate.Log
	stop     func()
}

type worldOptions struct {
	inOrder, streaming bool
}

func story(t *testing.T, o worldOptions, body func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.log = narrate.New(t)
		defer func() { w.stop() }()
		w.run(o)
		body(w)
	})
}

func newWorld(t *testing.T) *world {
	w := &world{
		t:        t,
		server:   testserver.New(t, apitest.Options{}),
		failures: map[string]int{},
		stop:     func() {},
	}
	w.metrics, w.registry = newMetrics(t)
	return w
}

func newMetrics(t testing.TB) (*Metrics, *prometheus.Registry) {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	m, err := New(registry)
	require.NoError(t, err)
	return m, registry
}

// run starts the stack, as a program would that wants all its metrics.
func (w *world) run(o worldOptions) {
	newItem := func() runtime.Object { return &corev1.ConfigMap{} }
	lw := wire.NewListWatch(w.server.Client(), "configmaps", "default", newItem, wire.Options{})

	ofInformer, err := w.metrics.Informer("story", configMaps)
	require.NoError(w.t, err)
	ofController, err := w.metrics.Controller("story")
	require.NoError(w.t, err)
	journey := NewJourney(ofController, func(obj any) []string {
		key, _ := store.DeletionHandlingMetaNamespaceKeyFunc(obj)
		return []string{key}
	})
	options := ofInformer.Options(informer.Options{
		Reflector: reflector.Options{
			UseWatchList: &o.streaming, Transform: journey.Transform(nil),
		},
		InOrder: o.inOrder,
	})
	w.maps = informer.NewSharedIndexInformer(lw, &corev1.ConfigMap{}, options)
	ofInformer.Follow(w.maps)
	w.ofMaps = ofInformer
	w.ctrl = controller.New("story", journey.Reconcile(w.reconcile), controller.Options[string]{
		MaxAttempts: 3,
		Metrics:     ofController.Metrics(),
		NewQueue: func(
			name string, limiter workqueue.TypedRateLimiter[string],
		) workqueue.TypedRateLimitingInterface[string] {
			return workqueue.NewTypedRateLimitingQueue(limiter, workqueue.Config[string]{
				Metrics: w.metrics.Workqueue(name),
			})
		},
	})
	ofController.Follow(w.ctrl)
	inner := w.ctrl.Handler(store.DeletionHandlingMetaNamespaceKeyFunc)
	_, err = w.maps.AddEventHandler(journey.Handler(slowHandler{w, inner}))
	require.NoError(w.t, err)

	w.stop = testserver.Run(w.t.Context(), w.maps.Run,
		func(ctx context.Context) { assert.NoError(w.t, w.ctrl.Run(ctx)) })
	synctest.Wait()
}

// reconcile takes 10 milliseconds.
func (w *world) reconcile(_ context.Context, key string) (controller.Result, error) {
	w.log.Event("worker", "reconcile %s", key)
	time.Sleep(10 * time.Millisecond)
	if w.failures[key] > 0 {
		w.failures[key]--
		return controller.Result{}, errors.New("not yet")
	}
	return controller.Result{}, nil
}

// slowHandler takes its time before it does its work.
type slowHandler struct {
	world *world
	inner informer.ResourceEventHandler
}

func (h slowHandler) OnAdd(obj any, initial bool) {
	h.world.log.Event("handler", "OnAdd begins")
	time.Sleep(h.world.delay)
	h.inner.OnAdd(obj, initial)
}

func (h slowHandler) OnUpdate(old, obj any) {
	time.Sleep(h.world.delay)
	h.inner.OnUpdate(old, obj)
}

func (h slowHandler) OnDelete(obj any) {
	h.world.log.Event("handler", "OnDelete begins")
	time.Sleep(h.world.delay)
	h.inner.OnDelete(obj)
}

func (w *world) create(name string) {
	w.log.Event("server", "create %s", name)
	w.server.CreateMap(name)
	synctest.Wait()
}

func (w *world) update(name string) {
	w.server.UpdateMap(name)
	synctest.Wait()
}

func (w *world) delete(name string) {
	w.log.Event("server", "delete %s", name)
	w.server.DeleteMap(name)
	synctest.Wait()
}

// expireWatch makes the server forget everything: only a relist helps.
func (w *world) expireWatch() {
	w.server.Faults().Break(apitest.Match{}, apitest.ErrorStream)
	synctest.Wait()
}

func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// scrape returns the lines of a scrape that begin with prefix, without the buckets of histograms.
func (w *world) scrape(prefix string) []string {
	var lines []string
	for line := range strings.Lines(export(w.t, w.registry)) {
		if strings.HasPrefix(line, prefix) && !strings.Contains(line, "_bucket{") {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
	}
	return lines
}

// value returns the number of a series as it is written in a scrape, or "none".
func (w *world) value(series string) string {
	number := value(w.t, w.registry, series)
	w.log.Event("worker", "%s %s", series, number)
	return number
}

func value(t testing.TB, registry *prometheus.Registry, series string) string {
	t.Helper()
	for line := range strings.Lines(export(t, registry)) {
		if rest, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(rest)
		}
	}
	return "none"
}

// export is a scrape.
func export(t testing.TB, registry *prometheus.Registry) string {
	t.Helper()
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(registry, promhttp.HandlerOpts{}).
		ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, answer.Code, "%s", answer.Body)
	return answer.Body.String()
}
