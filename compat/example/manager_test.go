// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/informerstack/apitest"
	"example.com/informerstack/compat/adapt"
)

// world is a server with a ConfigMap, in a bubble with the replicas of the manager that watch it.
type world struct {
	*apitest.Server
	t *testing.T
}

func story(t *testing.T, tell func(t *testing.T, w *world)) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{apitest.NewServer(apitest.Options{Scheme: scheme.Scheme}), t}
		require.NoError(t, w.StartPipe())
		defer w.Close()
		require.NoError(t, w.Create(empty()))
		tell(t, w)
	})
}

func empty() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}}
}

func (w *world) configMap() *corev1.ConfigMap {
	configMap := empty()
	require.NoError(w.t, w.Get(configMap))
	return configMap
}

func (w *world) change(text string) {
	configMap := w.configMap()
	configMap.Data = map[string]string{"text": text}
	require.NoError(w.t, w.Update(configMap))
}

// annotated asserts that the checksum is right a second from now.
func (w *world) annotated() {
	w.t.Helper()
	time.Sleep(time.Second)
	require.Equal(w.t, checksum(w.configMap()), w.configMap().Annotations[checksumAnnotation])
}

func (w *world) leader() string {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "default",
		Name: controllerName}}
	require.NoError(w.t, w.Get(lease))
	return *lease.Spec.HolderIdentity
}

// replica is one process that runs the manager.
type replica struct {
	manager.Manager
	lock *countedLock
	stop func()
}

func (w *world) config() *rest.Config {
	return &rest.Config{Host: w.URL, Transport: w.Transport()}
}

// options let several managers run in one process, where names of controllers are unique.
func options() manager.Options {
	return manager.Options{
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	}
}

// run runs a manager until the returned function was called.
func (w *world) run(m manager.Manager) (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error)
	go func() { done <- m.Start(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		assert.NoError(w.t, <-done)
	})
}

func (w *world) start(identity string) *replica {
	lock, err := newLock(w.config(), "default", identity)
	require.NoError(w.t, err)
	r := &replica{lock: &countedLock{Interface: lock}}
	r.Manager, err = newManager(w.config(), r.lock, options())
	require.NoError(w.t, err)
	r.stop = w.run(r)
	return r
}

// A change goes from the server through the informer, the queue and the reconciler back to the
// server, and each of the three pieces is this module's.
func TestStory_AChangeGoesThroughOurPieces(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		adds := queues.of(controllerName).count.Load()
		only := w.start("only")
		defer only.stop()
		w.annotated()
		w.change("hello")
		w.annotated()

		require.Equal(t, "only", w.leader())
		require.Positive(t, only.lock.writes.Load(), "the lock")
		require.GreaterOrEqual(t, queues.of(controllerName).count.Load()-adds, int64(2),
			"the queue")
		configMaps, err := only.GetCache().GetInformer(t.Context(), &corev1.ConfigMap{})
		require.NoError(t, err)
		informer, ours := adapt.CoreInformer(configMaps)
		require.True(t, ours, "the informer is a %T", configMaps)
		require.Equal(t, 4, informer.Status().Handlers[0].Calls,
			"an add, our change, and an annotation after each")
	})
}

// One of two replicas works. When it stops, the other takes over.
func TestStory_TheOtherReplicaTakesOver(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		first := w.start("first")
		defer first.stop()
		w.annotated()
		second := w.start("second")
		defer second.stop()
		time.Sleep(time.Minute)
		require.Equal(t, "first", w.leader())
		require.Zero(t, second.lock.writes.Load())
		first.stop()
		w.change("while there is no leader")
		time.Sleep(time.Minute)
		require.Equal(t, "second", w.leader())
		w.annotated()
	})
}

// A replica is not ready if its cache has long had no contact with the server.
func TestStory_AStaleCacheIsNotReady(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		only := w.start("only")
		defer only.stop()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil)
		require.NoError(t, err)
		ready := freshCache(only)
		time.Sleep(2 * quietFor)
		require.NoError(t, ready(request), "nothing happened, but the server says so")

		reads := apitest.Match{Verb: "list,watch", Resource: "configmaps"}
		w.Faults().Add(
			apitest.Fault{Match: reads, Err: apierrors.NewServiceUnavailable("not today")})
		time.Sleep(2 * quietFor)
		require.ErrorContains(t, ready(request), "not today")
		w.Faults().Clear()
		time.Sleep(time.Minute)
		require.NoError(t, ready(request))
	})
}
