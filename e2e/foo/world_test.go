// SPDX-License-Identifier: Apache-2.0

package foo_test

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/e2e/fixture"
	"example.com/informerstack/e2e/foo/api"
	"example.com/informerstack/realserver/cluster"
)

const patience = 3 * time.Minute

// eventually waits for an effect of the controller or of the server.
func eventually(t *testing.T, check func(t *assert.CollectT, ctx context.Context)) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) { check(c, t.Context()) }, patience,
		10*time.Millisecond)
}

// server is a server that a controller must work on.
type server struct {
	config *rest.Config
	forget func(t *testing.T) // makes every older resourceVersion expire
}

func newApitest(t *testing.T) server {
	s := apitest.NewServer(apitest.Options{Scheme: scheme.Scheme})
	require.NoError(t, s.Start())
	t.Cleanup(s.Close)
	return server{&rest.Config{Host: s.URL, QPS: -1},
		func(*testing.T) { s.Faults().Compact() }}
}

func newCluster(t *testing.T) server {
	c := cluster.New(t, cluster.Options{})
	return server{c.Config(cluster.AdminToken), func(t *testing.T) {
		require.NoError(t, c.Compact(t.Context()))
		c.KillAPIServer()
		require.NoError(t, c.StartAPIServer(t.Context()))
	}}
}

// world is a namespace with a controller; its methods write to it and check it.
type world struct {
	server
	t           *testing.T
	ctx         context.Context
	way         *fixture.Link // the controller's
	namespace   string
	client      kubernetes.Interface
	deployments typedappsv1.DeploymentInterface
	foos        api.FooInterface
}

func newWorld(t *testing.T, s server) *world {
	client, err := kubernetes.NewForConfig(s.config)
	require.NoError(t, err)
	foos, err := api.NewForConfig(s.config)
	require.NoError(t, err)
	namespace := fixture.NewNamespace(t, client)
	return &world{
		server: s, t: t, ctx: t.Context(), way: fixture.NewLink(), namespace: namespace,
		client: client, deployments: client.AppsV1().Deployments(namespace),
		foos: foos.Foos(namespace),
	}
}

// in returns the same world for a subtest.
func (w *world) in(t *testing.T) *world {
	sub := *w
	sub.t, sub.ctx = t, t.Context()
	return &sub
}

// start runs a controller with two workers. stop ends it, and waits for its end.
func (w *world) start(main func(context.Context, *rest.Config, string, int) error) (stop func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	ended := make(chan error, 1)
	go func() { ended <- main(ctx, w.way.Config(w.config), w.namespace, 2) }()
	w.t.Cleanup(cancel)
	return func() {
		w.t.Helper()
		cancel()
		select {
		case err := <-ended:
			require.NoError(w.t, err)
		case <-time.After(patience):
			require.Fail(w.t, "the controller does not end")
		}
	}
}

func (w *world) createFoo(name, deployment string, replicas int32) *api.Foo {
	w.t.Helper()
	foo, err := w.foos.Create(w.ctx, &api.Foo{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       api.FooSpec{DeploymentName: deployment, Replicas: &replicas},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	return foo
}

func (w *world) scaleFoo(name string, replicas int32) {
	w.t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := w.foos.Patch(w.ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(w.t, err)
}

func (w *world) deleteFoo(name string) {
	w.t.Helper()
	require.NoError(w.t, w.foos.Delete(w.ctx, name, metav1.DeleteOptions{}))
}

func (w *world) fooHasAvailable(name string, replicas int32) {
	w.t.Helper()
	eventually(w.t, func(t *assert.CollectT, ctx context.Context) {
		foo, err := w.foos.Get(ctx, name, metav1.GetOptions{})
		require.NoError(t, err)
		assert.Equal(t, replicas, foo.Status.AvailableReplicas)
	})
}

// createDeployment creates a Deployment without an owner.
func (w *world) createDeployment(name string, replicas int32) *appsv1.Deployment {
	w.t.Helper()
	labels := map[string]string{"app": name}
	deployment, err := w.deployments.Create(w.ctx, &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(w.t, err)
	return deployment
}

func (w *world) scaleDeployment(name string, replicas int32) {
	w.t.Helper()
	patch := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas)
	_, err := w.deployments.Patch(w.ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(w.t, err)
}

// makeAvailable sets the status that the deployment controller of a cluster with nodes would set.
func (w *world) makeAvailable(name string, replicas int32) {
	w.t.Helper()
	patch := fmt.Appendf(nil,
		`{"status":{"replicas":%[1]d,"readyReplicas":%[1]d,"availableReplicas":%[1]d}}`, replicas)
	_, err := w.deployments.Patch(w.ctx, name, types.MergePatchType, patch, metav1.PatchOptions{},
		"status")
	require.NoError(w.t, err)
}

func (w *world) deleteDeployment(name string) {
	w.t.Helper()
	require.NoError(w.t, w.deployments.Delete(w.ctx, name, metav1.DeleteOptions{}))
}

// hasDeployment waits for a Deployment with that many replicas and with owner, a Foo's name, as its
// controller; "" means no owner.
func (w *world) hasDeployment(name string, replicas int32, owner string) *appsv1.Deployment {
	w.t.Helper()
	var deployment *appsv1.Deployment
	eventually(w.t, func(t *assert.CollectT, ctx context.Context) {
		var err error
		deployment, err = w.deployments.Get(ctx, name, metav1.GetOptions{})
		require.NoError(t, err)
		require.Equal(t, &replicas, deployment.Spec.Replicas)
	})
	if owner == "" {
		require.Empty(w.t, deployment.OwnerReferences)
		return deployment
	}
	foo, err := w.foos.Get(w.ctx, owner, metav1.GetOptions{})
	require.NoError(w.t, err)
	yes := true
	require.Equal(w.t, []metav1.OwnerReference{{
		APIVersion: "samples.example.com/v1alpha1", Kind: "Foo", Name: owner, UID: foo.UID,
		Controller: &yes, BlockOwnerDeletion: &yes,
	}}, deployment.OwnerReferences)
	return deployment
}

func (w *world) hasNoDeployment(name string) {
	w.t.Helper()
	_, err := w.deployments.Get(w.ctx, name, metav1.GetOptions{})
	require.True(w.t, apierrors.IsNotFound(err), "%v", err)
}

// hasEvent waits for a warning about a Foo.
func (w *world) hasEvent(foo, reason string) {
	w.t.Helper()
	about := metav1.ListOptions{FieldSelector: "involvedObject.kind=Foo,involvedObject.name=" + foo}
	eventually(w.t, func(t *assert.CollectT, ctx context.Context) {
		events, err := w.client.CoreV1().Events(w.namespace).List(ctx, about)
		require.NoError(t, err)
		require.NotEmpty(t, events.Items)
		assert.Equal(t, corev1.EventTypeWarning, events.Items[0].Type)
		assert.Equal(t, reason, events.Items[0].Reason)
	})
}

// noGoroutinesBut waits until all other goroutines have ended, including those of connections.
func (w *world) noGoroutinesBut(before map[string]string) {
	w.t.Helper()
	transport, err := rest.TransportFor(w.config)
	require.NoError(w.t, err)
	tick, giveUp := time.NewTicker(10*time.Millisecond), time.Now().Add(patience)
	defer tick.Stop()
	for {
		w.way.Reset()
		utilnet.CloseIdleConnectionsFor(transport)
		left := goroutines()
		maps.DeleteFunc(left, func(id, stack string) bool {
			return before[id] != "" || strings.Contains(stack, "cluster.startProcess") // restarted
		})
		if len(left) == 0 {
			return
		}
		require.True(w.t, time.Now().Before(giveUp), "left behind: %q", left)
		<-tick.C // not require.Eventually, which starts goroutines
	}
}

// goroutines returns the stacks of all goroutines, by number.
func goroutines() map[string]string {
	stacks := make([]byte, 4<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	all := map[string]string{}
	for _, stack := range strings.Split(string(stacks), "\n\n") {
		id, rest, _ := strings.Cut(strings.TrimPrefix(stack, "goroutine "), " ")
		all[id] = rest
	}
	return all
}
