// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"example.com/informerstack/e2e/fixture"
	"example.com/informerstack/informer"
	"example.com/informerstack/informer/served"
	"example.com/informerstack/realserver/cluster"
)

var gadgets = schema.GroupVersionResource{
	Group: "served.example.com", Version: "v1", Resource: "gadgets"}

// counting counts the requests for gadgets.
type counting struct {
	http.RoundTripper
	count *atomic.Int64
}

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "/gadgets") {
		c.count.Add(1)
	}
	return c.RoundTripper.RoundTrip(r)
}

// gadgetWorld is a kind that comes and goes, and informers of it.
type gadgetWorld struct {
	t         *testing.T
	client    dynamic.Interface
	namespace string
	kinds     *served.Kinds
	informers []informer.SharedIndexInformer
	requests  atomic.Int64 // of the informers
	slowest   time.Duration
}

func newGadgetWorld(t *testing.T) *gadgetWorld {
	w := &gadgetWorld{t: t, namespace: newConfigMaps(t, shared).namespace}
	config := rest.CopyConfig(shared.Config(cluster.AdminToken))
	var err error
	w.client, err = dynamic.NewForConfig(config)
	require.NoError(t, err)
	w.kinds, err = served.New(served.Config{Client: config, Aggregated: true})
	require.NoError(t, err)
	config = rest.CopyConfig(config)
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper {
		return counting{inner, &w.requests}
	})
	c := restClient(t, config, gadgets)
	options := func() informer.Options {
		o := informer.Options{Kind: gadgets.GroupVersion().WithKind("Gadget")}
		return w.kinds.Options(gadgets, served.Optional, o)
	}
	w.informers = []informer.SharedIndexInformer{
		informer.New[*unstructured.Unstructured](c, "gadgets", options()),
		informer.New[*metav1.PartialObjectMetadata](c, "gadgets", options()),
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { w.kinds.Run(ctx) })
	t.Cleanup(running.Wait)
	t.Cleanup(stop)
	for _, inf := range w.informers {
		runInformer(t, inf)
	}
	return w
}

func (w *gadgetWorld) definitions() dynamic.ResourceInterface {
	return w.client.Resource(fixture.Definitions)
}

// define creates the definition, and returns when it is established.
func (w *gadgetWorld) define() {
	w.t.Helper()
	version := func(name string, isStored bool) any {
		return map[string]any{"name": name, "served": true, "storage": isStored,
			"schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}
	}
	d := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": gadgets.GroupResource().String()},
		"spec": map[string]any{
			"group": gadgets.Group, "scope": "Namespaced",
			"names":    map[string]any{"plural": "gadgets", "kind": "Gadget"},
			"versions": []any{version("v1", false), version("v2", true)},
		},
	}}
	_, err := w.definitions().Create(w.t.Context(), d, metav1.CreateOptions{})
	require.NoError(w.t, err)
	require.EventuallyWithT(w.t, func(t *assert.CollectT) {
		d, err := w.definitions().Get(w.t.Context(), gadgets.GroupResource().String(),
			metav1.GetOptions{})
		require.NoError(t, err)
		conditions, _, err := unstructured.NestedSlice(d.Object, "status", "conditions")
		require.NoError(t, err)
		isEstablished := false
		for _, c := range conditions {
			one := c.(map[string]any)
			isEstablished = isEstablished || one["type"] == "Established" && one["status"] == "True"
		}
		assert.True(t, isEstablished)
	}, patience, 20*time.Millisecond)
}

// serve changes whether v1 is served.
func (w *gadgetWorld) serve(is bool) {
	w.t.Helper()
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/versions/0/served","value":%t}]`, is)
	_, err := w.definitions().Patch(w.t.Context(), gadgets.GroupResource().String(),
		types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(w.t, err)
}

// create creates a gadget, as soon as the server accepts it.
func (w *gadgetWorld) create(name string) {
	w.t.Helper()
	gadget := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": gadgets.GroupVersion().String(), "kind": "Gadget",
		"metadata": map[string]any{"name": name},
	}}
	require.EventuallyWithT(w.t, func(t *assert.CollectT) {
		_, err := w.client.Resource(gadgets).Namespace(w.namespace).Create(w.t.Context(), gadget,
			metav1.CreateOptions{})
		assert.True(t, err == nil || apierrors.IsAlreadyExists(err), "%v", err)
	}, patience, 50*time.Millisecond)
}

// has waits until every informer has that many gadgets.
func (w *gadgetWorld) has(count int, what string) {
	w.t.Helper()
	began := time.Now()
	require.EventuallyWithT(w.t, func(t *assert.CollectT) {
		for _, inf := range w.informers {
			assert.Len(t, inf.GetStore().ListKeys(), count, "%s; %v; last error: %v", what,
				w.kinds.Status(), inf.Err())
		}
	}, patience, 10*time.Millisecond)
	w.slowest = max(w.slowest, time.Since(began))
}

// A definition is created, changed and deleted twenty times. While the kind is not served, its
// informers make no request; each change of it arrives within seconds.
func TestServed_AKindComesAndGoes(t *testing.T) {
	w := newGadgetWorld(t)
	require.NoError(t, informer.WaitForSync(t.Context(), w.informers[0], w.informers[1]))
	require.Zero(t, w.requests.Load())
	for round := range 20 {
		w.define()
		w.create("a")
		w.create("b")
		w.has(2, "served")
		w.serve(false)
		w.has(0, "v1 is not served")
		w.serve(true)
		w.has(2, "v1 is served again")
		require.NoError(t, w.definitions().Delete(t.Context(), gadgets.GroupResource().String(),
			metav1.DeleteOptions{}))
		w.has(0, "deleted")
		require.EventuallyWithT(t, func(t *assert.CollectT) {
			_, err := w.definitions().Get(w.t.Context(), gadgets.GroupResource().String(),
				metav1.GetOptions{})
			assert.True(t, apierrors.IsNotFound(err), "%v", err)
			for _, s := range w.kinds.Status() {
				assert.Equal(t, served.Absent, s.Phase)
			}
		}, patience, 20*time.Millisecond)
		if round%10 == 0 {
			isAsked := func() bool { // a request may be under way when the kind goes
				before := w.requests.Load()
				<-time.After(time.Second)
				return w.requests.Load() > before
			}
			require.Eventually(t, func() bool { return !isAsked() }, patience, time.Millisecond)
			require.Never(t, isAsked, 5*time.Second, time.Millisecond)
		}
	}
	t.Logf("the slowest change arrived after %v", w.slowest)
	assert.Less(t, w.slowest, 15*time.Second)
}
