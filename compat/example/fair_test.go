// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"example.com/informerstack/compat/adapt"
	ours "example.com/informerstack/workqueue"
)

// fairQueue is a controller.Options.NewQueue: the namespaces take turns, in a queue of this module
// that controller-runtime takes for its own.
func fairQueue(
	name string, limiter workqueue.TypedRateLimiter[reconcile.Request],
) workqueue.TypedRateLimitingInterface[reconcile.Request] {
	return adapt.NewPriorityQueue(name, limiter, ours.FairConfig[reconcile.Request]{
		Group: func(r reconcile.Request) string { return r.Namespace },
	}, func(o priorityqueue.AddOpts) ours.AddOpts {
		opts := ours.AddOpts{After: o.After, RateLimited: o.RateLimited}
		if o.Priority != nil {
			opts.Priority = *o.Priority
		}
		return opts
	})
}

// slow takes 10 ms for each object, and notes its key. A key that has failures fails first.
type slow struct {
	mu       sync.Mutex
	keys     []string
	failures map[string]int
}

func (s *slow) Reconcile(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
	time.Sleep(10 * time.Millisecond)
	s.mu.Lock()
	defer s.mu.Unlock()
	key := r.String()
	s.keys = append(s.keys, key)
	if s.failures[key] > 0 {
		s.failures[key]--
		return reconcile.Result{}, fmt.Errorf("%s fails", key)
	}
	return reconcile.Result{}, nil
}

// since returns how many keys were reconciled before key, from the nth on.
func (s *slow) since(n int, key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Index(s.keys[n:], key)
}

func (s *slow) len() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.keys)
}

func named(namespace, name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// startFair runs a manager with a controller that takes 10 ms for each object.
func (w *world) startFair(failures map[string]int) (s *slow, stop func()) {
	m, err := manager.New(w.config(), options())
	require.NoError(w.t, err)
	s = &slow{failures: failures}
	require.NoError(w.t, ctrl.NewControllerManagedBy(m).Named("fair").For(&corev1.ConfigMap{}).
		WithOptions(controller.Options{NewQueue: fairQueue}).Complete(s))
	return s, w.run(m)
}

// One tenant floods the queue, and the other is served in its turn.
func TestStory_ATenantThatFloodsDelaysNoOther(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		s, stop := w.startFair(map[string]int{})
		defer stop()
		time.Sleep(time.Second)
		for i := range 100 {
			require.NoError(t, w.Create(named("flood", fmt.Sprint(i))))
		}
		time.Sleep(105 * time.Millisecond)
		before := s.len()
		require.NoError(t, w.Create(named("quiet", "a")))
		time.Sleep(time.Second)
		assert.InDelta(t, 1, s.since(before, "quiet/a"), 1, "its turn is after one of the other's")
		require.Equal(t, 1+100+1, s.len())
	})
}

// A change overtakes the keys of the initial list, and those that failed among them.
func TestStory_AChangeOvertakesTheInitialList(t *testing.T) {
	story(t, func(t *testing.T, w *world) {
		failures := map[string]int{}
		for i := range 100 {
			require.NoError(t, w.Create(named("default", fmt.Sprint(i))))
			failures[fmt.Sprint("default/", i)] = 1
		}
		s, stop := w.startFair(failures)
		defer stop()
		for s.len() < 120 { // of 201
			time.Sleep(10 * time.Millisecond)
		}
		before := s.len()
		w.change("changed")
		time.Sleep(2 * time.Second)
		assert.InDelta(t, 1, s.since(before, "default/a"), 1)
		assert.GreaterOrEqual(t, s.len(), 201)
	})
}
