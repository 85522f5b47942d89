// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// kubernetes/kubernetes#86015, kubernetes/kubernetes#87957: an update that a relist finds is not a
// resync. It reaches every handler. After the first resync check, unchanged objects of a relist
// reach only the handlers that are due for a resync.
func TestRegress86015_RelistIsNoResync(t *testing.T) {
	never, often, seldom := time.Duration(0), time.Minute, time.Hour
	story(t, func(w *world) {
		none := w.addHandler(HandlerOptions{ResyncPeriod: &never})
		due := w.addHandler(HandlerOptions{ResyncPeriod: &often})
		notDue := w.addHandler(HandlerOptions{ResyncPeriod: &seldom})
		all := []*handler{none, due, notDue}
		w.create("changed")
		w.create("same")
		w.start()
		w.after(90 * time.Second) // the first check, at one minute
		for _, h := range all {
			h.take()
		}
		w.server.mu.Lock()
		obj := w.server.objects["changed"].DeepCopy() // an update without an event
		w.server.rv++
		obj.ResourceVersion = fmt.Sprint(w.server.rv)
		w.server.objects["changed"] = obj
		w.server.mu.Unlock()
		w.expireWatch()
		w.after(5 * time.Second)
		none.saw("update changed")
		due.saw("update changed", "unchanged same")
		notDue.saw("update changed")
	}, resyncEvery(time.Minute))
}

// kubernetes/kubernetes#59828: handlers can be added while Run starts and ends.
func TestRegress59828_AddRunStopRace(t *testing.T) {
	server := newServer()
	server.create("a")
	for _, inOrder := range []bool{false, true} {
		for range 100 {
			options := Options{ResyncPeriod: time.Second, InOrder: inOrder}
			informer := NewSharedIndexInformer(server, &corev1.ConfigMap{}, options)
			ctx, cancel := context.WithCancel(context.Background())
			var all sync.WaitGroup
			all.Go(func() { informer.Run(ctx) })
			all.Go(cancel)
			for range 4 {
				all.Go(func() {
					handle, err := informer.AddEventHandler(newRecorder())
					if err == nil {
						assert.NoError(t, informer.RemoveEventHandler(handle))
						<-handle.ShutdownChan()
					}
				})
			}
			all.Wait()
			assert.True(t, informer.IsStopped())
		}
	}
}

// kubernetes/kubernetes#104853: a second Run returns at once and sends no request.
func TestRegress104853_SecondRun(t *testing.T) {
	story(t, func(w *world) {
		w.start()
		w.informer.run(context.Background()) // a second run would block
		lists, _ := w.server.requests()
		assert.Equal(t, 1, lists)
		w.create("a")
		w.handlerSaw("add a")
	})
}

// kubernetes/kubernetes#136509, kubernetes/kubernetes#137296: changes and resyncs before the start
// of the handlers wait for them and block no goroutine.
func TestRegress136509_ChangesBeforeHandlersRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProcessor()
		r := newRecorder()
		second := time.Second
		l := newListener(&sharedIndexInformer{name: "test"}, r,
			HandlerOptions{ResyncPeriod: &second})
		l.resync = resyncSchedule{period: second, next: time.Now().Add(second)}
		p.mu.Lock()
		p.addLocked(l, nil)
		p.distributeLocked([]change{add(benchPod(1, 1), true)})
		p.mu.Unlock()
		time.Sleep(time.Second)
		assert.True(t, p.shouldResync())
		p.mu.Lock()
		c := update(benchPod(1, 1), benchPod(1, 1))
		c.resync = true
		p.distributeLocked([]change{c})
		p.mu.Unlock()
		p.start()
		synctest.Wait()
		assert.Equal(t, []string{"initial pod-1", "unchanged pod-1"}, r.take())
		p.stop()
	})
}

// kubernetes/kubernetes#137296: a handler that is added after the start of Run, and before the
// handlers run, does not block the stop.
func TestRegress137296_AddedWhileStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := NewSharedIndexInformer(newServer(), &corev1.ConfigMap{}, Options{})
		s := i.(*sharedIndexInformer)
		ctx, cancel := context.WithCancel(context.Background())
		c := s.start(ctx) // the first step of Run
		handle, err := s.AddEventHandler(newRecorder())
		require.NoError(t, err)
		cancel()
		c.Run(ctx)
		s.setStopped()
		s.processor.stop()
		<-handle.(*listener).ShutdownChan()
	})
}

// kubernetes/kubernetes#111122: handlers can be removed while they are called, twice, from another
// informer, and after the stop. The others still receive.
func TestRegress111122_RemoveHandlers(t *testing.T) {
	story(t, func(w *world) {
		other := newWorld(t, w.impl, worldOptions{})
		staying := w.addHandler(HandlerOptions{})
		w.start()
		w.handler.block = make(chan struct{})
		w.create("a")
		require.NoError(t, w.informer.removeHandler(w.handler.registration))
		require.NoError(t, w.informer.removeHandler(w.handler.registration))
		require.NoError(t, w.informer.removeHandler(other.handler.registration),
			"a handle of another informer")
		close(w.handler.block)
		w.create("b")
		w.handlerSaw("add a")
		staying.saw("add a", "add b")
		other.start()
		other.create("c")
		other.handlerSaw("add c")
		other.stop()
		w.stop()
		require.NoError(t, w.informer.removeHandler(staying.registration))
	})
}

// kubernetes/kubernetes#139755: RemoveEventHandler does not wait for a running call,
// ShutDownEventHandler does.
func TestRegress139755_ShutDownWaits(t *testing.T) {
	story(t, func(w *world) {
		never := w.addHandler(HandlerOptions{})
		require.NoError(t, w.informer.shutDownHandler(never.registration), "it never ran")
		w.start()
		w.handler.slow = time.Minute
		w.create("a")
		began := time.Now()
		require.NoError(t, w.informer.removeHandler(w.handler.registration))
		assert.Zero(t, time.Since(began))
		require.NoError(t, w.informer.shutDownHandler(w.handler.registration))
		assert.Equal(t, time.Minute, time.Since(began))
		w.handlerSaw("add a")
	})
}

// kubernetes/kubernetes#93646: a panic in the process function leaves Run, although the reflector
// still runs. So the process ends.
func TestRegress93646_PanicLeavesRun(t *testing.T) {
	for _, inOrder := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			server := newServer()
			server.create("a")
			options := Options{InOrder: inOrder}
			beforeWrites(func() error { panic("from the store") })(&options)
			informer := NewSharedIndexInformer(server, &corev1.ConfigMap{}, options)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			assert.PanicsWithValue(t, "from the store", func() { informer.Run(ctx) })
		})
	}
}

// kubernetes/kubernetes#58394: if panics do not end the process, the notification after a panic is
// delivered.
func TestRegress58394_NextAfterPanic(t *testing.T) {
	story(t, func(w *world) {
		utilruntime.ReallyCrash = false
		defer func() { utilruntime.ReallyCrash = true }()
		w.start()
		w.handler.panics = map[string]bool{"add b": true}
		for _, name := range []string{"a", "b", "c"} {
			w.create(name)
		}
		w.handlerSaw("add a")
		w.after(time.Second)
		w.handlerSaw("add c")
	})
}

// The pause after a panic does not delay the stop.
func TestPanicPause_EndsWithStop(t *testing.T) {
	story(t, func(w *world) {
		utilruntime.ReallyCrash = false
		defer func() { utilruntime.ReallyCrash = true }()
		w.handler.panics = map[string]bool{"add a": true}
		w.start()
		w.create("a")
		w.create("b")
		began := time.Now()
		w.stop()
		assert.Zero(t, time.Since(began))
	}, bothQueues)
}

// kubernetes/kubernetes#124344, kubernetes/kubernetes#131799: the transform runs once for each
// received object, also in a streamed list, and not in a resync.
func TestRegress124344_TransformOnce(t *testing.T) {
	for name, options := range map[string][]func(*worldOptions){
		"list":   {bothQueues, resyncEvery(time.Second)},
		"stream": {bothQueues, resyncEvery(time.Second), streaming},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, func(w *world) {
				var runs atomic.Int32
				w.transform = func(obj any) (any, error) {
					cm := obj.(*corev1.ConfigMap)
					if cm.Annotations["transformed"] != "" {
						return nil, errors.New("transformed twice")
					}
					runs.Add(1)
					cm = cm.DeepCopy()
					cm.Annotations = map[string]string{"transformed": "yes"}
					return cm, nil
				}
				w.create("a")
				w.create("b")
				w.start()
				w.update("a")
				w.after(time.Minute)
				assert.EqualValues(t, 3, runs.Load())
				for _, obj := range w.informer.objects() {
					assert.Equal(t, "yes", obj.(*corev1.ConfigMap).Annotations["transformed"])
				}
				w.expireWatch()
				w.after(time.Minute)
				assert.EqualValues(t, 5, runs.Load(), "a relist receives every object again")
			}, options...)
		})
	}
}

// client-go runs the transform twice for the objects of a streamed list.
func TestDifference_TransformOnceWhenStreaming(t *testing.T) {
	story(t, func(w *world) {
		var runs atomic.Int32
		w.transform = func(obj any) (any, error) {
			runs.Add(1)
			return obj, nil
		}
		w.create("a")
		w.start()
		assert.True(t, w.informer.HasSynced())
		want := map[string]int32{ours: 1, oursRealFIFO: 1, clientGo: 2}[w.impl]
		assert.Equal(t, want, runs.Load())
	}, streaming)
}

// A failing transform loses no object: the informer retries, Err returns the error, and the
// informer syncs once the transform works.
func TestDifference_FailedTransformIsRetried(t *testing.T) {
	story(t, func(w *world) {
		var broken atomic.Bool
		broken.Store(true)
		w.transform = func(obj any) (any, error) {
			if broken.Load() {
				return nil, errors.New("cannot transform")
			}
			return obj, nil
		}
		w.start()
		w.create("a")
		w.after(time.Minute)
		w.handlerSaw()
		if w.impl != clientGo {
			require.ErrorContains(t, w.ours().Err(), "cannot transform")
		}
		broken.Store(false)
		w.after(5 * time.Minute)
		if w.impl == clientGo {
			w.handlerSaw() // until the next relist
			assert.Empty(t, w.stored())
			return
		}
		w.handlerSaw("add a")
		assert.NoError(t, w.ours().Err())
		assert.Equal(t, []string{"a@1"}, w.stored())
	})
}

// An object that the transform always refuses stops the updates of the store. client-go skips it
// until the next LIST, which then fails.
func TestDifference_AnObjectThatCannotBeTransformed(t *testing.T) {
	story(t, func(w *world) {
		w.transform = func(obj any) (any, error) {
			if obj.(*corev1.ConfigMap).Name == "bad" {
				return nil, errors.New("cannot transform")
			}
			return obj, nil
		}
		w.start()
		w.create("a")
		w.create("bad")
		w.create("b")
		w.after(5 * time.Minute)
		want := []string{"a@1"}
		if w.impl == clientGo {
			want = append(want, "b@3")
		}
		assert.Equal(t, want, w.stored())
		w.expireWatch()
		w.create("c")
		w.after(5 * time.Minute)
		assert.Equal(t, want, w.stored())
		w.delete("bad")
		w.after(5 * time.Minute)
		assert.Equal(t, []string{"a@1", "b@3", "c@5"}, w.stored())
		w.handler.take()
	})
}

// The delete of an unknown object: a DeltaFIFO drops it; a RealFIFO delivers it, as in client-go.
func TestDifference_DeleteOfTheUnknown(t *testing.T) {
	story(t, func(w *world) {
		w.start()
		w.server.mu.Lock()
		w.server.rv++
		ghost := benchPod(0, w.server.rv)
		w.server.publishLocked(watch.Deleted, &corev1.ConfigMap{ObjectMeta: ghost.ObjectMeta})
		w.server.mu.Unlock()
		if w.impl == ours {
			w.handlerSaw()
		} else {
			w.handlerSaw("delete pod-0")
		}
	})
}
