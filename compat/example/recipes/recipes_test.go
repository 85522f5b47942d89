// SPDX-License-Identifier: Apache-2.0

// Package recipes has tests of a controller, for you to copy: controller-runtime's manager on a
// server of package apitest or a real one, fake time, requests and snapshots.
//
// Run go test -v ./recipes, or go test -v ./recipes -run TestManager -real, in compat/example.
package recipes

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"example.com/informerstack/apitest"
	"example.com/informerstack/realserver"
	"example.com/informerstack/realserver/either"
)

// patience bounds the waits for what must happen; the checks of a wait are a pause apart.
const (
	patience = time.Minute
	pause    = 10 * time.Millisecond
)

// checked has the time of the last check, which the controller makes once in an hour.
const checked = "example.com/checked"

// checker is the controller to test.
type checker struct{ client.Client }

// Reconcile checks a ConfigMap, if it is due, and comes back when it is due again.
func (c checker) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var m corev1.ConfigMap
	if err := c.Get(ctx, req.NamespacedName, &m); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	last, err := time.Parse(time.RFC3339, m.Annotations[checked])
	if err == nil && time.Since(last) < time.Hour {
		return ctrl.Result{RequeueAfter: time.Hour - time.Since(last)}, nil
	}
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, checked, time.Now().UTC().Format(time.RFC3339))
	return ctrl.Result{RequeueAfter: time.Hour}, c.Update(ctx, &m)
}

// startManager runs a manager with the controller, in a namespace, until the test ends.
func startManager(t *testing.T, to *rest.Config, namespace string) client.Client {
	ctrl.SetLogger(klog.Background())
	m, err := manager.New(to, manager.Options{
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
		// several managers in one process
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)},
	})
	require.NoError(t, err)
	err = ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Complete(checker{m.GetClient()})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- m.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	return m.GetClient()
}

func configMap(namespace string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "a"}}
}

// On apitest, or with -real on a kube-apiserver.
func TestManager(t *testing.T) {
	server := either.Start(t, realserver.Options{})
	namespace := either.Namespace(t, server)
	reader := startManager(t, server, namespace)
	a := configMap(namespace)
	require.NoError(t, reader.Create(t.Context(), a))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.NoError(c, reader.Get(t.Context(), client.ObjectKeyFromObject(a), a))
		assert.NotEmpty(c, a.Annotations[checked])
	}, patience, pause)
}

// A day of the controller, with ten minutes in which the server refuses its writes, takes no time.
// The informer makes one LIST and one WATCH at a time; the controller writes once in an hour.
func TestManager_ADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apitest.Start(t, apitest.Options{}, configMap("default"))
		startManager(t, server.Config(), "default")
		time.Sleep(time.Second) // controller-runtime polls until its cache is filled
		before, err := server.List("configmaps", "")
		require.NoError(t, err)
		assert.Equal(t, golden, apitest.Snapshot(before))

		time.Sleep(12 * time.Hour)
		allow := server.Faults().RefuseConnections()
		time.Sleep(10 * time.Minute)
		require.NoError(t, allow())
		time.Sleep(12 * time.Hour)

		after, err := server.List("configmaps", "")
		require.NoError(t, err)
		assert.Equal(t, golden, apitest.Snapshot(after), "only times differ")
		assert.Len(t, server.Requests(apitest.Match{Verb: "update"}), 25)
	})
}

const golden = `apiVersion: v1
kind: ConfigMap
metadata:
  annotations:
    example.com/checked: TIME
  name: a
  namespace: default
`

// The manager reads the objects once: one list, or one watch that begins with the objects.
func TestManager_ReadsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := apitest.Start(t, apitest.Options{}, configMap("default"))
		startManager(t, server.Config(), "default")
		time.Sleep(time.Second)
		reads := apitest.Match{Verb: "get,list,watch", Resource: "configmaps"}
		for _, r := range server.Requests(reads) {
			t.Log(r, r.Query)
		}
		assert.Len(t, server.Requests(reads), 1)
	})
}
