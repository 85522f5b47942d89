// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/reflector"
	"example.com/informerstack/reflector/wire"
	"example.com/informerstack/store"
)

// With Coalesce, a slow handler gets the last state of each object, not all states.
func TestCoalesce_LastStateOnly(t *testing.T) {
	story(t, func(w *world) {
		w.create("a")
		w.create("b")
		w.start()
		w.handlerSaw("initial a", "initial b")
		w.handler.block = make(chan struct{})
		w.update("a") // is being delivered
		for range 50 {
			w.update("a")
			w.update("b")
		}
		assert.Equal(t, 3, w.handler.status().Pending)
		close(w.handler.block)
		w.handlerSaw("update a", "update a", "update b")
		view, wrong := w.handler.snapshot()
		assert.Empty(t, wrong, "each update starts from the last delivered state")
		assert.Equal(t, map[string]string{"a": "102", "b": "103"}, view)
	}, bothQueues, withHandler(HandlerOptions{Coalesce: true}))
}

// With Coalesce, pending changes are merged by the table at coalescingBacklog.
func TestCoalesce_Merges(t *testing.T) {
	for _, tc := range []struct {
		name   string
		happen func(w *world)
		want   []string
	}{
		{"add then updates is add",
			func(w *world) { w.create("a"); w.update("a"); w.update("a") }, []string{"add a"}},
		{"add then delete is delete",
			func(w *world) { w.create("a"); w.delete("a") }, []string{"delete a"}},
		{"updates then delete is both",
			func(w *world) { w.update("old"); w.update("old"); w.delete("old") },
			[]string{"update old", "delete old"}},
		{"updated, re-created and gone", func(w *world) {
			w.update("old")
			w.delete("old")
			w.create("old")
			w.update("old")
			w.delete("old")
		}, []string{"update old", "delete old"}},
		{"updated and re-created is all three",
			func(w *world) { w.update("old"); w.delete("old"); w.create("old") },
			[]string{"update old", "delete old", "add old"}},
		{"re-created is both",
			func(w *world) { w.delete("old"); w.create("old"); w.update("old") },
			[]string{"delete old", "add old"}},
		{"re-created and gone is one delete",
			func(w *world) { w.delete("old"); w.create("old"); w.delete("old") },
			[]string{"delete old"}},
		{"re-created twice is both", func(w *world) {
			w.delete("old")
			w.create("old")
			w.delete("old")
			w.create("old")
		}, []string{"delete old", "add old"}},
		{"a key keeps its position",
			func(w *world) { w.update("old"); w.create("b"); w.update("old") },
			[]string{"update old", "add b"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			story(t, func(w *world) {
				w.create("old")
				w.create("first")
				w.start()
				w.handlerSaw("initial first", "initial old")
				w.handler.block = make(chan struct{})
				w.update("first")
				tc.happen(w)
				close(w.handler.block)
				w.handlerSaw(append([]string{"update first"}, tc.want...)...)
				_, wrong := w.handler.snapshot()
				assert.Empty(t, wrong)
			}, bothQueues, withHandler(HandlerOptions{Coalesce: true}))
		})
	}
}

// An object changes so that it no longer passes a filter, and is then deleted, both while the
// handler is busy. The handler behind the filter gets its delete.
func TestCoalesce_FilterMissesNoDelete(t *testing.T) {
	story(t, func(w *world) {
		filtered := FilteringResourceEventHandler{
			FilterFunc: func(obj any) bool { _, rv := describe(obj); return rv <= "2" },
			Handler:    w.handler,
		}
		_, err := w.informer.addHandler(filtered, HandlerOptions{Coalesce: true})
		require.NoError(t, err)
		require.NoError(t, w.informer.removeHandler(w.handler.registration))
		w.create("a")
		w.create("b")
		w.start()
		w.handlerSaw("initial a", "initial b")
		w.handler.block = make(chan struct{})
		w.update("a") // is being delivered
		w.update("b")
		w.delete("b")
		close(w.handler.block)
		w.handlerSaw("delete a", "delete b")
	}, bothQueues)
}

// With Coalesce, the handler syncs even if an initial add was merged away.
func TestCoalesce_SyncAccounting(t *testing.T) {
	story(t, func(w *world) {
		w.handler.block = make(chan struct{})
		for _, name := range []string{"a", "b", "c"} {
			w.create(name)
		}
		w.start()
		w.update("b")
		w.delete("c")
		assert.False(t, w.handler.HasSynced())
		close(w.handler.block)
		w.handlerSaw("initial a", "initial b", "delete c")
		assert.True(t, w.handler.HasSynced())
	}, bothQueues, withHandler(HandlerOptions{Coalesce: true}))
}

// If the entry of a re-created object is merged, it keeps the object that the handler knows.
func TestCoalesce_DeleteShowsTheKnownObject(t *testing.T) {
	b := newCoalescedChanges(everything)
	first, second, third := benchPod(1, 1), benchPod(1, 2), benchPod(1, 3)
	b.push(&batch{changes: []change{remove(first), add(second, false), remove(third)}})
	assert.Equal(t, []change{remove(first)}, b.next().changes)
	assert.Nil(t, b.next())
}

// Changes of objects without a key are not merged.
func TestCoalesce_WithoutKey(t *testing.T) {
	b := newCoalescedChanges(everything)
	b.push(&batch{changes: []change{add("no object", false), add("nor this", false)}})
	assert.EqualValues(t, 2, b.due())
	assert.Equal(t, []change{add("no object", false)}, b.next().changes)
	b.drop()
	assert.Nil(t, b.next())
}

func everything(p *batch) []change { return p.changes }

// With SplitRecreated, an unseen re-creation is a tombstone and an add.
func TestSplitRecreated(t *testing.T) {
	story(t, func(w *world) {
		usual := w.addHandler(HandlerOptions{})
		w.create("a")
		w.start()
		w.handlerSaw("initial a")
		w.loseDelete("a")
		w.create("a")
		w.handlerSaw("tombstone a", "add a")
		usual.saw("initial a", "update a")
		w.update("a")
		w.handlerSaw("update a")
	}, bothQueues, withHandler(HandlerOptions{SplitRecreated: true}))
}

// With SkipUnchanged, a relist without changes causes no calls, and a resync still does.
func TestSkipUnchanged(t *testing.T) {
	hourly, never := time.Hour, time.Duration(0)
	story(t, func(w *world) {
		usual := w.addHandler(HandlerOptions{ResyncPeriod: &never})
		resyncs := w.addHandler(HandlerOptions{ResyncPeriod: &hourly, SkipUnchanged: true})
		w.create("a")
		w.create("b")
		w.start()
		w.expireWatch()
		w.server.update("b")
		w.after(time.Minute)
		w.handlerSaw("initial a", "initial b", "update b")
		usual.saw("initial a", "initial b", "unchanged a", "update b")
		resyncs.saw("initial a", "initial b", "update b")
		w.after(time.Hour)
		w.handlerSaw()
		usual.saw()
		resyncs.saw("resync a", "resync b")
	}, bothQueues, resyncEvery(time.Hour),
		withHandler(HandlerOptions{SkipUnchanged: true, ResyncPeriod: &never}))
}

// With SkipPanics, only the notification that panicked is missing, and the handler syncs.
func TestSkipPanics(t *testing.T) {
	story(t, func(w *world) {
		w.handler.panics = map[string]bool{"initial b": true}
		for _, name := range []string{"a", "b", "c"} {
			w.create(name)
		}
		w.start()
		w.handlerSaw("initial a", "initial c")
		assert.True(t, w.handler.HasSynced())
		assert.Equal(t, 1, w.handler.status().Panics)
		assert.Equal(t, 3, w.handler.status().Calls)
		w.update("b")
		w.handlerSaw("update b")
	}, bothQueues, withHandler(HandlerOptions{SkipPanics: true}))
}

// With DrainTimeout, pending changes are delivered after the handler was removed and after the
// informer stopped.
func TestDrainTimeout_Delivers(t *testing.T) {
	story(t, func(w *world) {
		w.start()
		w.handler.slow = time.Second
		for _, name := range []string{"a", "b", "c"} {
			w.create(name)
		}
		removed := w.add(&recorder{view: map[string]string{}, slow: time.Second},
			HandlerOptions{DrainTimeout: time.Minute})
		require.NoError(t, w.informer.shutDownHandler(removed.registration))
		removed.saw("initial a", "initial b", "initial c")
		assert.False(t, removed.registration.(*listener).drainTimer.Stop(),
			"the timer was stopped")
		w.update("a")
		w.stop()
		w.handlerSaw("add a", "add b", "add c", "update a")
	}, bothQueues, withHandler(HandlerOptions{DrainTimeout: time.Minute}))
}

// A change that arrives just before the handler is removed is delivered, even if the handler's
// goroutine notices the end first.
func TestDrainTimeout_DeliversTheLastChange(t *testing.T) {
	for _, coalesce := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p, r := newProcessor(), newRecorder()
			l := newListener(&sharedIndexInformer{}, r,
				HandlerOptions{DrainTimeout: time.Hour, Coalesce: coalesce})
			p.addLocked(l, nil)
			p.start()
			synctest.Wait()
			p.mu.Lock()
			p.log.append([]change{add(podAt("a", "1"), false)}, nil)
			p.removeLocked(l) // alone wakes the goroutine
			p.mu.Unlock()
			<-l.done
			require.Equal(t, []string{"add a"}, r.take())
		})
	}
}

// After DrainTimeout the remaining changes are dropped.
func TestDrainTimeout_Ends(t *testing.T) {
	story(t, func(w *world) {
		w.start()
		w.handler.slow = time.Minute
		for _, name := range []string{"a", "b", "c", "d"} {
			w.create(name)
		}
		began := time.Now()
		w.stop()
		assert.Equal(t, 2*time.Minute, time.Since(began),
			"the call in flight at the deadline is waited for")
		w.handlerSaw("add a", "add b")
	}, bothQueues, withHandler(HandlerOptions{DrainTimeout: 90 * time.Second}))
}

// Status shows the length and age of a backlog.
func TestStatus_ShowsBacklog(t *testing.T) {
	for _, coalesce := range []bool{false, true} {
		story(t, func(w *world) {
			w.start()
			assert.Zero(t, w.handler.status().Pending)
			w.handler.block = make(chan struct{})
			w.create("a")
			w.after(time.Minute)
			w.create("b")
			w.after(time.Minute)
			status := w.handler.status()
			assert.Equal(t, 2, status.Pending)
			assert.Equal(t, 2*time.Minute, status.OldestPending)
			close(w.handler.block)
			w.settle()
			status = w.handler.status()
			assert.Equal(t, HandlerStatus{Name: "*informer.recorder", HasSynced: true, Calls: 2},
				status)
		}, bothQueues, withHandler(HandlerOptions{Coalesce: coalesce}))
	}
}

// The status of an informer contains the number of objects and its handlers.
func TestStatus_OfInformer(t *testing.T) {
	story(t, func(w *world) {
		informer := w.ours()
		assert.Equal(t, "SharedIndexInformer configmaps of ns", informer.Status().Name)
		assert.False(t, informer.Status().Started)
		w.create("a")
		w.start()
		status := informer.Status()
		assert.True(t, status.Started)
		assert.True(t, status.HasSynced)
		assert.Equal(t, 1, status.Objects)
		assert.Len(t, status.Handlers, 1)
		assert.Equal(t, "1", status.Reflector.ResourceVersion)
		w.stop()
		assert.True(t, informer.Status().Stopped)
	}, bothQueues, withOptions(func(o *Options) {
		o.Reflector.TypeDescription = "configmaps of ns"
	}))
}

// The metrics of queue and store are set.
func TestOptions_Metrics(t *testing.T) {
	var version gauge
	measured := 0
	story(t, func(w *world) {
		version, measured = 0, 0
		w.create("a")
		w.start()
		w.update("a")
		assert.EqualValues(t, 2, version)
		assert.NotZero(t, measured)
	}, bothQueues, withOptions(func(o *Options) {
		o.StoreMetrics.ResourceVersion = version.Set
		o.Metrics.Latency = func(time.Duration) { measured++ }
	}))
}

type gauge float64

func (g *gauge) Set(v float64) { *g = gauge(v) }

// WrapQueue and WrapIndexer wrap queue and store.
func TestOptions_Wrap(t *testing.T) {
	var reads int
	story(t, func(w *world) {
		w.create("a")
		w.start()
		before := reads // what the story prints is read, too
		w.informer.objects()
		assert.Equal(t, before+1, reads)
	}, bothQueues, withOptions(func(o *Options) {
		o.WrapIndexer = func(inner store.Indexer) store.Indexer {
			return listed{inner, func() { reads++ }}
		}
	}))
}

// WrapListerWatcher is called once, when the informer starts, with Run's context.
func TestOptions_WrapListerWatcher(t *testing.T) {
	var calls, requests int
	var ended context.Context
	story(t, func(w *world) {
		calls, requests = 0, 0
		w.create("a")
		assert.Zero(t, calls)
		w.start()
		w.informer.run(w.t.Context()) // the second run
		w.handlerSaw("initial a")
		assert.Equal(t, 1, calls)
		assert.Positive(t, requests)
		assert.NoError(t, ended.Err())
		w.stop()
		assert.Error(t, ended.Err())
	}, bothQueues, withOptions(func(o *Options) {
		o.WrapListerWatcher = func(
			ctx context.Context, lw reflector.ListerWatcher, example runtime.Object,
		) reflector.ListerWatcher {
			assert.IsType(t, &corev1.ConfigMap{}, example)
			calls, ended = calls+1, ctx
			list := func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
				requests++
				return lw.ListWithContext(ctx, o)
			}
			return listFirst{&reflector.ListWatch{
				ListWithContextFunc: list, WatchFuncWithContext: lw.WatchWithContext,
			}}
		}
	}))
}

// NewQueue and NewReflector are called once, when the informer starts.
func TestOptions_NewQueueAndReflector(t *testing.T) {
	var known deltafifo.KeyListerGetter
	var made []string
	story(t, func(w *world) {
		known, made = nil, nil
		w.create("a")
		assert.Empty(t, made)
		w.start()
		w.informer.run(w.t.Context()) // the second run
		w.handlerSaw("initial a")
		w.update("a")
		w.handlerSaw("update a")
		assert.Equal(t, []string{"queue", "reflector SharedIndexInformer *v1.ConfigMap"}, made)
		assert.Same(t, w.ours().GetStore(), known)
	}, only(ours), withOptions(func(o *Options) {
		o.NewQueue = func(o deltafifo.Options) deltafifo.Queue {
			known, made = o.KnownObjects, append(made, "queue")
			return struct{ deltafifo.Queue }{deltafifo.NewRealFIFO(o)} // a wrapper
		}
		o.NewReflector = func(
			lw reflector.ListerWatcher, expectedType any, s reflector.Store, o reflector.Options,
		) *reflector.Reflector {
			made = append(made, "reflector "+o.Name)
			return reflector.New(lw, expectedType, s, o)
		}
	}))
}

// Only New can select objects, and say what a server calls them.
func TestBadInput_SelectionOfAListerWatcher(t *testing.T) {
	for _, o := range []Options{
		{Namespace: "a"}, {LabelSelector: "a"}, {FieldSelector: "a"}, {ListKind: "a"},
		{Kind: schema.GroupVersionKind{Kind: "a"}}, {ReadAhead: wire.NewBudget(1)},
	} {
		assert.Panics(t, func() { NewSharedIndexInformer(newServer(), nil, o) })
	}
}

// A panic that does not end the process costs its notification, and the next one is delayed by a
// second. The handler still syncs.
func TestDifference_HandlerSyncsAfterPanic(t *testing.T) {
	story(t, func(w *world) {
		utilruntime.ReallyCrash = false
		defer func() { utilruntime.ReallyCrash = true }()
		w.handler.panics = map[string]bool{"initial a": true}
		w.create("a")
		w.create("b")
		w.start()
		w.handlerSaw()
		w.after(time.Second)
		w.handlerSaw("initial b")
		assert.Equal(t, w.impl != clientGo, w.handler.HasSynced())
	})
}

// Status counts both calls of a re-creation, until each has returned.
func TestSplitRecreated_StatusCountsCalls(t *testing.T) {
	story(t, func(w *world) {
		w.create("a")
		w.start()
		w.handlerSaw("initial a")
		w.loseDelete("a")
		w.handler.slow = time.Minute
		w.create("a")
		assert.Equal(t, 2, w.handler.status().Pending)
		w.after(time.Minute)
		assert.Equal(t, 1, w.handler.status().Pending, "the add is being delivered")
		w.after(time.Minute)
		assert.Zero(t, w.handler.status().Pending)
	}, bothQueues, withHandler(HandlerOptions{SplitRecreated: true}))
}
