// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

// fairQueue is an Options.NewQueue of a queue with priorities.
func fairQueue(_ string, limiter stringLimiter) stringQueue {
	return workqueue.NewTypedRateLimitingQueue(limiter, workqueue.Config[string]{
		Queue: workqueue.NewFair(workqueue.FairConfig[string]{}, workqueue.Config[string]{})})
}

// priorities returns those of the ready and waiting keys that are not 0.
func (w *world) priorities() map[string]int { return w.c.extended.Snapshot().Priorities }

func lowPriority() Options[string] {
	return Options[string]{NewQueue: fairQueue, LowPriority: -100}
}

// Changes overtake the initial list and resyncs; a key that changes as well is one of them.
func TestStory_ChangesOvertakeTheInitialList(t *testing.T) {
	story(t, lowPriority(), func(w *world) {
		h := w.c.Handler(store.MetaNamespaceKeyFunc)
		h.OnAdd(pod("listed", "1"), true)
		h.OnAdd(pod("listed-then-changed", "1"), true)
		h.OnUpdate(pod("resynced", "1"), pod("resynced", "1"))
		h.OnUpdate(pod("changed", "1"), pod("changed", "2"))
		h.OnAdd(pod("created", "3"), false)
		h.OnUpdate(pod("listed-then-changed", "1"), pod("listed-then-changed", "4"))
		h.OnDelete(pod("deleted", "5"))
		w.run()
		w.workerSaw("ns/changed: ok", "ns/created: ok", "ns/listed-then-changed: ok",
			"ns/deleted: ok", "ns/listed: ok", "ns/resynced: ok")
	})
}

// A retry, and a return with RequeueAfter, have the priority with which the worker got the key.
func TestRetries_KeepTheirPriority(t *testing.T) {
	story(t, lowPriority(), func(w *world) {
		h := w.c.Handler(store.MetaNamespaceKeyFunc)
		for _, name := range []string{"fails", "returns"} {
			w.answers("ns/"+name, "error", "after 1m", "hold")
			h.OnAdd(pod(name, "1"), true)
		}
		w.answers("ns/changed", "error")
		h.OnUpdate(pod("changed", "1"), pod("changed", "2"))
		w.run()
		assert.Equal(t, map[string]int{"ns/fails": -100, "ns/returns": -100}, w.priorities())
		w.after(time.Second)
		assert.Equal(t, map[string]int{"ns/fails": -100, "ns/returns": -100}, w.priorities())
		w.after(time.Minute)
		assert.Equal(t, map[string]int{"ns/returns": -100}, w.priorities())
		w.workerSaw("ns/changed: error", "ns/fails: error", "ns/returns: error",
			"ns/changed: ok", "ns/fails: after 1m", "ns/returns: after 1m")
	})
}

// With LowPriorityRetries, a key that has failed waits behind changes until it changes.
func TestRetries_OfLowPriority(t *testing.T) {
	opts := lowPriority()
	opts.LowPriorityRetries = true
	story(t, opts, func(w *world) {
		w.run()
		w.answers("a", "error", "after 1m", "ok")
		w.change("a")
		assert.Equal(t, map[string]int{"a": -100}, w.priorities())
		w.after(time.Second)
		assert.Equal(t, map[string]int{"a": -100}, w.priorities(), "RequeueAfter keeps it")
		w.change("a")
		w.workerSaw("a: error", "a: after 1m", "a: ok")
	})
}

// Without the option, or in a queue without priorities, keys are taken in their order.
func TestLowPriority_IsAnOption(t *testing.T) {
	for name, opts := range map[string]Options[string]{
		"no option":     {NewQueue: fairQueue},
		"no priorities": {LowPriority: -100},
		"a plain queue": {LowPriority: -100,
			NewQueue: func(_ string, limiter stringLimiter) stringQueue {
				return struct{ stringQueue }{workqueue.NewTypedRateLimitingQueue(
					limiter, workqueue.Config[string]{})}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, opts, func(w *world) {
				h := w.c.Handler(store.MetaNamespaceKeyFunc)
				h.OnAdd(pod("listed", "1"), true)
				h.OnUpdate(pod("resynced", "1"), pod("resynced", "1"))
				h.OnUpdate(pod("changed", "1"), pod("changed", "2"))
				w.answers("ns/listed", "error", "ok")
				w.run()
				w.after(time.Second)
				w.workerSaw("ns/listed: error", "ns/resynced: ok", "ns/changed: ok",
					"ns/listed: ok")
			})
		})
	}
}
