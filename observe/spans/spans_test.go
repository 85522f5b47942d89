// SPDX-License-Identifier: Apache-2.0

package spans_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/observe/spans"
	"example.com/informerstack/store"
)

// world is a handler and a reconcile function with spans.
type world struct {
	t        *testing.T
	recorder *tracetest.SpanRecorder
	provider trace.TracerProvider
	handler  informer.ResourceEventHandler
	spans    *spans.Spans[string]
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, recorder: tracetest.NewSpanRecorder()}
	w.provider = sdk.NewTracerProvider(sdk.WithSpanProcessor(w.recorder))
	w.spans = spans.New(w.provider, "settings", keysOf)
	w.handler = w.spans.Handler(informer.ResourceEventHandlerFuncs{})
	return w
}

func keysOf(obj any) []string {
	key, err := store.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil || key == "default/ignored" {
		return nil
	}
	return []string{key}
}

func object(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: name, ResourceVersion: "7"}}
}

func (w *world) reconcile(next controller.ReconcileFunc[string]) error {
	_, err := w.spans.Reconcile(next)(w.t.Context(), "default/a")
	return err
}

// with returns a reconcile function that has this result.
func with(result controller.Result, err error) controller.ReconcileFunc[string] {
	return func(context.Context, string) (controller.Result, error) { return result, err }
}

// last returns the span that ended last.
func (w *world) last() sdk.ReadOnlySpan {
	ended := w.recorder.Ended()
	require.NotEmpty(w.t, ended)
	return ended[len(ended)-1]
}

func attributes(span sdk.ReadOnlySpan) map[string]any {
	all := map[string]any{}
	for _, attribute := range span.Attributes() {
		all[string(attribute.Key)] = attribute.Value.AsInterface()
	}
	return all
}

func links(span sdk.ReadOnlySpan) (to []trace.SpanID) {
	for _, link := range span.Links() {
		to = append(to, link.SpanContext.SpanID())
	}
	return to
}

// A reconcile links to the calls of handlers that caused it, and a retry to the attempt before it.
func TestSpans_LinkReconcilesToTheirCauses(t *testing.T) {
	w := newWorld(t)
	w.handler.OnAdd(object("a"), true)
	added := w.last()
	assert.Equal(t, "informer add", added.Name())
	assert.Equal(t, map[string]any{"k8s.controller.name": "settings",
		"k8s.object.key": "default/a", "k8s.object.resource_version": "7"}, attributes(added))
	w.handler.OnUpdate(object("a"), object("a"))
	updated := w.last()
	w.handler.OnAdd(object("b"), false)
	w.handler.OnAdd(object("ignored"), false)

	failure := errors.New("no such volume")
	require.ErrorIs(t, w.reconcile(with(controller.Result{}, failure)), failure)
	failed := w.last()
	assert.Equal(t, "reconcile settings", failed.Name())
	assert.Equal(t, []trace.SpanID{
		added.SpanContext().SpanID(), updated.SpanContext().SpanID()}, links(failed))
	assert.Equal(t, sdk.Status{Code: codes.Error, Description: "no such volume"}, failed.Status())

	require.NoError(t, w.reconcile(with(controller.Result{RequeueAfter: time.Minute}, nil)))
	retried := w.last()
	assert.Equal(t, []trace.SpanID{failed.SpanContext().SpanID()}, links(retried))
	assert.InDelta(t, 60, attributes(retried)["k8s.controller.requeue_after_seconds"], 0)
	assert.Equal(t, codes.Unset, retried.Status().Code)

	w.handler.OnDelete(store.DeletedFinalStateUnknown{Key: "default/a", Obj: object("a")})
	deleted := w.last()
	assert.Panics(t, func() {
		_ = w.reconcile(func(context.Context, string) (controller.Result, error) { panic("bug") })
	})
	assert.Equal(t, []trace.SpanID{deleted.SpanContext().SpanID()}, links(w.last()))
	assert.Equal(t, "reconcile did not return", w.last().Status().Description)
}

func TestSpans_BoundTheLinks(t *testing.T) {
	w := newWorld(t)
	for range 100 {
		w.handler.OnAdd(object("a"), false)
	}
	require.NoError(t, w.reconcile(with(controller.Result{}, nil)))
	assert.Len(t, w.last().Links(), 8)
	assert.EqualValues(t, 92, attributes(w.last())["k8s.controller.more_causes"])
	require.NoError(t, w.reconcile(with(controller.Result{}, nil)))
	assert.Empty(t, w.last().Links())
}

// Requests of a reconcile are its children, and carry their identity to the server.
func TestRequests_AreChildrenOfTheReconcile(t *testing.T) {
	w := newWorld(t)
	var carried []string
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		carried = append(carried, r.Header.Get("Traceparent"))
		if r.Method == http.MethodPut {
			rw.WriteHeader(http.StatusConflict)
		}
	}))
	defer server.Close()
	client := http.Client{Transport: spans.Requests(w.provider)(http.DefaultTransport)}
	request := func(ctx context.Context, method, path string) error {
		r, err := http.NewRequestWithContext(ctx, method, server.URL+path, http.NoBody)
		require.NoError(t, err)
		response, err := client.Do(r)
		if err == nil {
			assert.NoError(t, response.Body.Close())
		}
		return err
	}
	require.NoError(t, request(t.Context(), http.MethodGet, "/outside?token=x"))
	assert.Empty(t, w.recorder.Ended())
	require.NoError(t, w.reconcile(func(ctx context.Context, _ string) (controller.Result, error) {
		assert.NoError(t, request(ctx, http.MethodPut, "/api/v1/namespaces/default?token=x"))
		server.Close()
		assert.Error(t, request(ctx, http.MethodGet, "/gone"))
		return controller.Result{}, nil
	}))
	put, get, reconcile := w.recorder.Ended()[0], w.recorder.Ended()[1], w.last()
	for _, child := range []sdk.ReadOnlySpan{put, get} {
		assert.Equal(t, reconcile.SpanContext().SpanID(), child.Parent().SpanID())
		assert.Equal(t, codes.Error, child.Status().Code)
	}
	assert.Equal(t, map[string]any{"http.request.method": "PUT", "server.address": "127.0.0.1",
		"url.path": "/api/v1/namespaces/default", "http.response.status_code": int64(409)},
		attributes(put))
	assert.Equal(t, []string{"", "00-" + put.SpanContext().TraceID().String() + "-" +
		put.SpanContext().SpanID().String() + "-01"}, carried)
}

// Without a provider nothing is recorded or remembered.
func TestSpans_AreOffWithoutAProvider(t *testing.T) {
	s := spans.New[string](nil, "settings", func(any) []string {
		t.Error("an object is looked at")
		return nil
	})
	called := 0
	handler := s.Handler(informer.ResourceEventHandlerFuncs{AddFunc: func(any) { called++ }})
	handler.OnAdd(object("a"), false)
	_, err := s.Reconcile(func(ctx context.Context, _ string) (controller.Result, error) {
		called++
		assert.False(t, trace.SpanContextFromContext(ctx).IsValid())
		return controller.Result{}, nil
	})(t.Context(), "default/a")
	require.NoError(t, err)
	assert.Equal(t, 2, called)
}

type failure struct{ text string }

func (f *failure) Error() string { return f.text } // panics for nil

// The text of an error may be long, or its method may panic.
func TestSpans_ErrorsAreCutAndSafe(t *testing.T) {
	w := newWorld(t)
	var none *failure
	for _, failed := range []error{none, errors.New(strings.Repeat("x", 1<<20))} {
		assert.NotPanics(t, func() {
			assert.Equal(t, failed, w.reconcile(with(controller.Result{}, failed)))
		})
	}
	ended := w.recorder.Ended()
	require.Len(t, ended, 2)
	for i, kind := range []string{"*spans_test.failure", "*errors.errorString"} {
		require.Len(t, ended[i].Events(), 1)
		event := ended[i].Events()[0]
		assert.Equal(t, "exception", event.Name)
		assert.Equal(t, codes.Error, ended[i].Status().Code)
		require.Len(t, event.Attributes, 2)
		assert.Equal(t, kind, event.Attributes[0].Value.AsString())
		assert.Equal(t, ended[i].Status().Description, event.Attributes[1].Value.AsString())
		assert.LessOrEqual(t, len(ended[i].Status().Description), 1100)
	}
}
