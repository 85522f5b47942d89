// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/store"
)

var _ cache.ResourceEventHandler = EnqueueHandler[string]{}

func pod(name, version string, owners ...string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, ResourceVersion: version,
		Labels: map[string]string{"owners": strings.Join(owners, ".")},
	}}
}

// owners maps a pod to the keys that it names.
func owners(obj any) ([]string, error) {
	if tombstone, ok := obj.(store.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	label := obj.(*corev1.Pod).Labels["owners"]
	if label == "" {
		return nil, nil
	}
	return strings.Split(label, "."), nil
}

func TestHandlerEnqueuesTheKey(t *testing.T) {
	story(t, Options[string]{}, func(w *world) {
		w.run()
		h := w.c.Handler(store.DeletionHandlingMetaNamespaceKeyFunc)
		h.OnAdd(pod("a", "1"), true)
		w.settle()
		h.OnUpdate(pod("a", "1"), pod("a", "2"))
		w.settle()
		h.OnDelete(pod("a", "2"))
		w.settle()
		h.OnDelete(store.DeletedFinalStateUnknown{Key: "ns/b"})
		w.settle()
		w.workerSaw("ns/a: ok", "ns/a: ok", "ns/a: ok", "ns/b: ok")
	})
}

// Without a maximum of attempts, an Enqueue does not wait for the key tracker.
func TestEnqueue_WithoutAMaximum(t *testing.T) {
	c := New("test", noopInt, Options[int]{})
	defer c.Queue().ShutDown()
	c.keys.mu.Lock()
	defer c.keys.mu.Unlock()
	c.Enqueue(1)
	c.Queue().Add(2)
	assert.Equal(t, 2, c.Queue().Len())
}

// An update without a new resourceVersion is a resync, which wakes no dead letter.
func TestHandlerKnowsResyncs(t *testing.T) {
	for name, tc := range map[string]struct {
		older, newer any
		wakes        bool
	}{
		"same version":         {pod("a", "1"), pod("a", "1"), false},
		"new version":          {pod("a", "1"), pod("a", "2"), true},
		"unknown version":      {pod("a", ""), pod("a", ""), true},
		"not versioned at all": {store.ExplicitKey("ns/a"), store.ExplicitKey("ns/a"), true},
		"versioned of late":    {store.ExplicitKey("ns/a"), pod("a", "1"), true},
		"no longer versioned":  {pod("a", "1"), store.ExplicitKey("ns/a"), true},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, Options[string]{}, func(w *world) {
				w.run()
				h := w.c.Handler(store.MetaNamespaceKeyFunc)
				w.answers("ns/a", "terminal")
				w.change("ns/a")
				w.deadLetters("ns/a Terminal 1")
				h.OnUpdate(tc.older, tc.newer)
				w.settle()
				assert.Equal(t, tc.wakes, w.c.DeadLetters().Len() == 0)
			})
		})
	}
}

// The owner that an object left must learn of it as well as the new one.
func TestMapHandlerEnqueuesOldAndNewOwners(t *testing.T) {
	story(t, Options[string]{}, func(w *world) {
		w.run()
		h := w.c.MapHandler(owners)
		h.OnAdd(pod("a", "1"), false)
		w.settle()
		w.workerSaw()
		h.OnUpdate(pod("a", "1"), pod("a", "2", "x", "y"))
		w.settle()
		w.workerSaw("x: ok", "y: ok")
		h.OnUpdate(pod("a", "2", "x", "y"), pod("a", "3", "y", "z"))
		w.settle()
		w.workerSaw("y: ok", "z: ok", "x: ok")
		h.OnDelete(store.DeletedFinalStateUnknown{Key: "ns/a", Obj: pod("a", "3", "y", "z")})
		w.settle()
		w.workerSaw("y: ok", "z: ok")
	})
}

func TestHandlerWithoutKey(t *testing.T) {
	story(t, Options[string]{}, func(w *world) {
		w.run()
		h := w.c.Handler(store.MetaNamespaceKeyFunc)
		h.OnAdd("no object", false)
		h.OnAdd(nil, false)
		h.OnUpdate(nil, pod("a", "1"))
		w.c.Handler(nil).OnAdd(pod("b", "1"), false)
		w.c.MapHandler(nil).OnDelete(pod("b", "1"))
		w.settle()
		w.workerSaw("ns/a: ok")
		assert.EqualValues(t, 5, w.c.Snapshot().KeyErrors)
	})
}

// Handlers written for a plain workqueue get the controller's queue: what they add is a change.
func TestQueueAddsAreChanges(t *testing.T) {
	for name, add := range map[string]func(w *world){
		"Add":            func(w *world) { w.c.Queue().Add("a") },
		"AddAfter":       func(w *world) { w.c.Queue().AddAfter("a", time.Minute) },
		"AddRateLimited": func(w *world) { w.c.Queue().AddRateLimited("a") },
	} {
		t.Run(name, func(t *testing.T) {
			story(t, Options[string]{MaxAttempts: 9}, func(w *world) {
				w.answers("a", "terminal")
				w.run()
				w.change("a")
				add(w)
				w.deadLetters()
				w.after(time.Minute)
				w.workerSaw("a: terminal", "a: ok")
			})
		})
	}
}
