// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/helpers/boundedmap"
	"example.com/informerstack/store"
)

const traveled = `controller_event_to_reconcile_seconds`

// The time that a change waits for a slow handler is part of its journey, though it is in no metric
// of the workqueue.
func TestStory_AJourneyBeginsAtTheServer(t *testing.T) {
	for _, inOrder := range []bool{false, true} {
		story(t, worldOptions{inOrder: inOrder}, func(w *world) {
			w.delay = 3 * time.Second
			w.create("a")
			w.create("b")
			w.after(time.Minute)
			assert.Equal(t, "2", w.value(traveled+`_count{controller="story"}`))
			assert.Equal(t, "9.02", w.value(traveled+`_sum{controller="story"}`),
				"3 s + 6 s + 2 reconciles")
			assert.Equal(t, "0.02",
				w.value(`controller_runtime_reconcile_time_seconds_sum{controller="story"}`))
			assert.Equal(t, "0", w.value(`workqueue_queue_duration_seconds_sum{name="story"}`))
		})
	}
}

// A delete travels too.
func TestStory_ADeleteIsAJourney(t *testing.T) {
	story(t, worldOptions{}, func(w *world) {
		w.create("a")
		w.after(time.Minute)
		w.delete("a")
		w.after(time.Minute)
		assert.Equal(t, "2", w.value(traveled+`_count{controller="story"}`))
		assert.Equal(t, "0.02", w.value(traveled+`_sum{controller="story"}`))
	})
}

// harness is a Journey by itself.
type harness struct {
	*Journey[string]
	registry *prometheus.Registry
	handler  informer.ResourceEventHandler
	result   error
}

func newHarness(t *testing.T) *harness {
	m, registry := newMetrics(t)
	c, err := m.Controller("c")
	require.NoError(t, err)
	j := NewJourney(c, func(obj any) []string {
		key, err := store.DeletionHandlingMetaNamespaceKeyFunc(obj)
		if err != nil {
			return nil
		}
		return []string{key}
	})
	return &harness{
		Journey:  j,
		registry: registry,
		handler:  j.Handler(informer.ResourceEventHandlerFuncs{}),
	}
}

func (h *harness) receive(t *testing.T, obj any) {
	got, err := h.Transform(nil)(obj)
	require.NoError(t, err)
	require.Equal(t, obj, got)
}

func (h *harness) reconcile(key string) {
	_, _ = h.Reconcile(func(context.Context, string) (controller.Result, error) {
		return controller.Result{}, h.result
	})(context.Background(), key)
}

func (h *harness) measured(t *testing.T) string {
	return value(t, h.registry, traveled+`_count{controller="c"}`) + " in " +
		value(t, h.registry, traveled+`_sum{controller="c"}`)
}

func object(name, resourceVersion string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: resourceVersion},
	}
}

func TestJourney_WhatCountsAsItsBeginning(t *testing.T) {
	for _, c := range []struct {
		name string
		play func(t *testing.T, h *harness)
		want string
	}{
		{"the oldest of the changes that one reconcile answers", func(t *testing.T, h *harness) {
			for version := range 3 {
				h.receive(t, object("a", fmt.Sprint(version)))
				h.handler.OnAdd(object("a", fmt.Sprint(version)), false)
				time.Sleep(time.Second)
			}
			h.reconcile("a")
			h.reconcile("a")
		}, "1 in 3"},
		{"the first attempt's, if that fails", func(t *testing.T, h *harness) {
			h.receive(t, object("a", "1"))
			h.handler.OnAdd(object("a", "1"), false)
			h.result = errors.New("not yet")
			h.reconcile("a")
			time.Sleep(time.Minute)
			h.result = nil
			h.reconcile("a")
		}, "1 in 60"},
		{"nothing's, if it is given up", func(t *testing.T, h *harness) {
			h.handler.OnAdd(object("a", "1"), false)
			h.result = controller.TerminalError(errors.New("never"))
			h.reconcile("a")
			h.result = nil
			h.reconcile("a")
		}, "0 in 0"},
		{"the handler's call, if the arrival was not noted", func(t *testing.T, h *harness) {
			time.Sleep(time.Minute)
			h.handler.OnAdd(object("a", "1"), false)
			time.Sleep(time.Second)
			h.reconcile("a")
		}, "1 in 1"},
		{"not the arrival of a newer state", func(t *testing.T, h *harness) {
			h.receive(t, object("a", "1"))
			time.Sleep(time.Minute)
			h.receive(t, object("a", "2"))
			h.handler.OnAdd(object("a", "1"), false)
			time.Sleep(time.Second)
			h.handler.OnUpdate(object("a", "1"), object("a", "2"))
			h.reconcile("a")
		}, "1 in 1"},
		{"no resync", func(t *testing.T, h *harness) {
			h.handler.OnUpdate(object("a", "1"), object("a", "1"))
			h.reconcile("a")
		}, "0 in 0"},
		{"not the first sight of what a relist confirmed", func(t *testing.T, h *harness) {
			h.receive(t, object("a", "1"))
			time.Sleep(time.Hour)
			h.handler.OnUpdate(object("a", "1"), object("a", "1"))
			h.handler.OnUpdate(object("a", "1"), object("a", "2"))
			h.reconcile("a")
		}, "1 in 0"},
		{"no tombstone's, nor what came before it", func(t *testing.T, h *harness) {
			h.handler.OnAdd(object("a", "1"), false)
			h.handler.OnDelete(store.DeletedFinalStateUnknown{Key: "a", Obj: object("a", "1")})
			h.handler.OnDelete(store.DeletedFinalStateUnknown{Key: "b"})
			time.Sleep(time.Second)
			h.reconcile("a")
			h.reconcile("b")
		}, "0 in 0"},
		{"nothing's, for what is no object", func(t *testing.T, h *harness) {
			h.receive(t, "text")
			h.handler.OnAdd("text", false)
			h.handler.OnUpdate(nil, "text")
			h.handler.OnDelete(nil)
		}, "0 in 0"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t)
				c.play(t, h)
				assert.Equal(t, c.want, h.measured(t))
			})
		})
	}
}

// Objects that came and went leave nothing, and no more is remembered than maxFollowed. Keys that
// have been given up make room for others in time.
func TestJourney_RemembersAtMostSoMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := maxFollowed
		defer func() { maxFollowed = before }()
		maxFollowed = 4
		h := newHarness(t)
		measured := 0
		for i := range 20 {
			name := fmt.Sprint("came and went ", i)
			h.receive(t, object(name, "1"))
			h.handler.OnDelete(object(name, "1"))
			h.reconcile(name)
			measured++
		}
		assert.Zero(t, h.arrivals.Len())
		assert.Zero(t, h.begun.Len())
		for round := range 3 {
			for i := range 6 {
				name := fmt.Sprintf("%d in round %d", i, round)
				h.receive(t, object(name, "1"))
				h.receive(t, object(name+", filtered", "1"))
				h.handler.OnAdd(object(name, "1"), false)
				if i == 0 {
					time.Sleep(time.Second)
					h.reconcile(name)
					measured++
				}
			}
			assert.LessOrEqual(t, h.arrivals.Len(), maxFollowed)
			assert.Equal(t, maxFollowed, h.begun.Len())
			time.Sleep(boundedmap.StaleAfter)
		}
		assert.Equal(t, fmt.Sprintf("%d in %d", measured, 3), h.measured(t))
	})
}

func TestJourney_TransformKeepsTheResult(t *testing.T) {
	h := newHarness(t)
	refused := errors.New("refused")
	got, err := h.Transform(func(any) (any, error) { return nil, refused })(object("a", "1"))
	assert.Nil(t, got)
	assert.ErrorIs(t, err, refused)
}

// A reconcile that panics or ends its goroutine is tried again: its journey has not ended.
func TestJourney_APanicIsNotItsEnd(t *testing.T) {
	for name, fails := range map[string]func(){
		"panic": func() { panic("boom") }, "Goexit": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHarness(t)
				calls := 0
				reconcile := h.Reconcile(
					func(context.Context, string) (controller.Result, error) {
						if calls++; calls == 1 {
							fails()
						}
						return controller.Result{}, nil
					})
				h.begin("ns/a", time.Now())
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					defer func() { _ = recover() }()
					_, _ = reconcile(t.Context(), "ns/a")
				}()
				<-ended
				time.Sleep(2 * time.Second)
				_, _ = reconcile(t.Context(), "ns/a")
				assert.Equal(t, 2, calls)
				assert.Equal(t, "1 in 2", h.measured(t))
			})
		})
	}
}

// The trace of a reconcile that is sampled is an exemplar.
func TestJourney_HasExemplars(t *testing.T) {
	for flags, want := range map[trace.TraceFlags]string{trace.FlagsSampled: "trace_id", 0: ""} {
		h := newHarness(t)
		span := trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: flags})
		h.begin("ns/a", time.Now())
		_, err := h.Reconcile(func(context.Context, string) (controller.Result, error) {
			return controller.Result{}, nil
		})(trace.ContextWithSpanContext(t.Context(), span), "ns/a")
		require.NoError(t, err)
		families, err := h.registry.Gather()
		require.NoError(t, err)
		got := ""
		for _, family := range families {
			if family.GetName() != traveled {
				continue
			}
			for _, bucket := range family.GetMetric()[0].GetHistogram().GetBucket() {
				if exemplar := bucket.GetExemplar(); exemplar != nil {
					got = exemplar.GetLabel()[0].GetName()
					assert.Equal(t, span.TraceID().String(), exemplar.GetLabel()[0].GetValue())
				}
			}
		}
		assert.Equal(t, want, got)
	}
}
