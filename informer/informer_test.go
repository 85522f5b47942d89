// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// Before the start, a handler's shorter period shortens the check period. After the start it is
// raised to the check period.
func TestResyncPlan(t *testing.T) {
	logger := klog.Background()
	p := resyncPlan{checkPeriod: time.Minute}
	assert.Equal(t, time.Duration(0), p.admit(logger, 0))
	assert.Equal(t, time.Duration(0), p.admit(logger, -time.Second))
	assert.Equal(t, time.Hour, p.admit(logger, time.Hour))
	assert.Equal(t, 30*time.Second, p.admit(logger, 30*time.Second))
	assert.Equal(t, 30*time.Second, p.checkPeriod)
	assert.Equal(t, time.Second, p.admit(logger, time.Millisecond), "the least")
	p.fixed = true
	p.checkPeriod = time.Minute
	assert.Equal(t, time.Minute, p.admit(logger, 30*time.Second))
	assert.Equal(t, time.Minute, p.checkPeriod)
	off := resyncPlan{}
	assert.Equal(t, time.Duration(0), off.admit(logger, time.Minute))
}

// Which handlers get an update without a change, from a resync or a relist.
func TestResyncRound(t *testing.T) {
	plain := &listener{id: 1}
	skipping := &listener{id: 2, options: HandlerOptions{SkipUnchanged: true}}
	resync, relist := &change{resync: true}, &change{}
	for _, tc := range []struct {
		name                     string
		round                    resyncRound
		plainResync, plainRelist bool
		skipsResync, skipsRelist bool
	}{
		{"not asked yet", nil, true, true, false, false},
		{"due", resyncRound{1: true, 2: true}, true, true, true, false},
		{"not due", resyncRound{1: false, 2: false}, false, false, false, false},
	} {
		assert.Equal(t, tc.plainResync, tc.round.wants(plain, resync), tc.name)
		assert.Equal(t, tc.plainRelist, tc.round.wants(plain, relist), tc.name)
		assert.Equal(t, tc.skipsResync, tc.round.wants(skipping, resync), tc.name)
		assert.Equal(t, tc.skipsRelist, tc.round.wants(skipping, relist), tc.name)
	}
}

// Each handler of an informer can have its own period.
func TestResync_PerHandler(t *testing.T) {
	two, ten, one := 2*time.Second, 10*time.Second, time.Second
	story(t, func(w *world) {
		often := w.addHandler(HandlerOptions{ResyncPeriod: &two})
		seldom := w.addHandler(HandlerOptions{ResyncPeriod: &ten})
		w.create("a")
		w.start()
		late := w.addHandler(HandlerOptions{ResyncPeriod: &one})
		w.after(41 * time.Second)
		count := func(h *handler) (n int) {
			for _, line := range h.take() {
				if line == "resync a" {
					n++
				}
			}
			return n
		}
		assert.Equal(t, 0, count(w.handler), "the default is the informer's: an hour")
		assert.Equal(t, 20, count(often))
		assert.Equal(t, 4, count(seldom))
		assert.Equal(t, 20, count(late), "a late handler cannot have the checks made more often")
	}, resyncEvery(time.Hour))
}

// Resyncs that were due during a long relist are not made up for.
func TestResync_DoesNotCatchUp(t *testing.T) {
	often, seldom := 2*time.Second, 10*time.Second
	story(t, func(w *world) {
		w.addHandler(HandlerOptions{ResyncPeriod: &often})
		h := w.addHandler(HandlerOptions{ResyncPeriod: &seldom})
		w.create("a")
		w.start()
		w.after(20 * time.Second)
		w.transform = func(obj any) (any, error) { time.Sleep(time.Minute); return obj, nil }
		w.expireWatch()
		w.after(65 * time.Second)
		w.transform = nil
		h.take()
		w.after(20 * time.Second)
		assert.Equal(t, []string{"resync a", "resync a"}, h.take())
	}, resyncEvery(time.Hour))
}

// AddEventHandler rejects a nil handler. client-go accepts it and crashes at the first event.
func TestDifference_NilHandlerIsRefused(t *testing.T) {
	informer := NewSharedIndexInformer(newServer(), nil, Options{ResyncPeriod: -time.Second})
	_, err := informer.AddEventHandler(nil)
	require.EqualError(t, err, "handler is nil")
	typed := NewTyped[*corev1.ConfigMap](informer, schema.GroupResource{Resource: "configmaps"})
	_, err = typed.AddTypedEventHandler(nil, HandlerOptions{})
	require.EqualError(t, err, "handler is nil")
	theirs := cache.NewSharedIndexInformer(newServer(), nil, 0, nil)
	_, err = theirs.AddEventHandler(nil)
	require.NoError(t, err)
}

// The error for a handle of another kind names its type. client-go prints it by the wrong verb.
func TestDifference_ForeignHandleIsNamed(t *testing.T) {
	informer := NewSharedIndexInformer(newServer(), nil, Options{})
	require.EqualError(t, informer.RemoveEventHandler(nil), "invalid key type <nil>")
	require.EqualError(t, informer.RemoveEventHandler(foreignHandle{}),
		"invalid key type informer.foreignHandle")
	theirs := cache.NewSharedIndexInformer(newServer(), nil, 0, nil)
	require.EqualError(t, theirs.RemoveEventHandler(nil), "invalid key type %!t(<nil>)")
}

type foreignHandle struct {
	ResourceEventHandlerRegistration
}

// Before Run an informer is empty and not synced, and all its methods work.
func TestBeforeRun(t *testing.T) {
	informer := NewSharedIndexInformer(newServer(), &corev1.ConfigMap{}, Options{})
	assert.False(t, informer.HasSynced())
	assert.False(t, informer.IsStopped())
	assert.Empty(t, informer.LastSyncResourceVersion())
	assert.NoError(t, informer.Err())
	assert.Empty(t, informer.GetStore().List())
	assert.Equal(t, "SharedIndexInformer *v1.ConfigMap", informer.HasSyncedChecker().Name())
}

// With a context that is done already, Run returns at once.
func TestRun_DoneContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		informer := NewSharedIndexInformer(newServer(), &corev1.ConfigMap{}, Options{})
		informer.Run(ctx)
		assert.True(t, informer.IsStopped())
		assert.EqualError(t, informer.AddIndexers(store.Indexers{}),
			"indexer was not added because it has stopped already")
	})
}

// A late handler gets the content of the store and each change after it: no change fits in between.
func TestLateHandler_MissesNoChange(t *testing.T) {
	whenListed := func() {}
	story(t, func(w *world) {
		w.create("a")
		w.start()
		p := w.ours().(*sharedIndexInformer).processor
		whenListed = func() {
			if p.mu.TryLock() { // a change may be stored now
				p.mu.Unlock()
				w.server.create("b")
				synctest.Wait()
			}
		}
		h := w.addHandler(HandlerOptions{})
		whenListed = func() {}
		w.create("c")
		for _, name := range w.onServer() {
			assert.Contains(t, h.view, name[:1])
		}
	}, bothQueues, withOptions(func(o *Options) {
		o.WrapIndexer = func(inner store.Indexer) store.Indexer {
			return listed{inner, func() { whenListed() }}
		}
	}))
}

// AddIndexers works while the informer runs, and indexes the stored objects.
func TestAddIndexers_WhileRunning(t *testing.T) {
	story(t, func(w *world) {
		w.create("a")
		w.start()
		informer := NewTyped[*corev1.ConfigMap](w.ours(), schema.GroupResource{})
		byName := store.TypedIndexers[*corev1.ConfigMap]{
			"name": func(cm *corev1.ConfigMap) ([]string, error) { return []string{cm.Name}, nil },
		}
		require.NoError(t, informer.Indexer().AddTypedIndexers(byName))
		indexers := store.TypedIndexersToIndexers(byName)
		require.ErrorContains(t, informer.AddIndexers(indexers), "indexer conflict")
		found, err := informer.Indexer().ByTypedIndex("name", "a")
		require.NoError(t, err)
		require.Len(t, found, 1)
		assert.Equal(t, "a", found[0].Name)
	}, bothQueues)
}

func TestTypedInformer_Handlers(t *testing.T) {
	story(t, func(w *world) {
		configMaps := schema.GroupResource{Resource: "configmaps"}
		informer := NewTyped[*corev1.ConfigMap](w.ours(), configMaps)
		var got []string
		handler := TypedResourceEventHandlerFuncs[*corev1.ConfigMap]{
			AddFunc:    func(cm *corev1.ConfigMap) { got = append(got, "add "+cm.Name) },
			UpdateFunc: func(_, cm *corev1.ConfigMap) { got = append(got, "update "+cm.Name) },
			DeleteFunc: func(d DeletedObject[*corev1.ConfigMap]) {
				got = append(got, "delete "+d.GetKey())
			},
		}
		_, err := informer.AddTypedEventHandler(handler, HandlerOptions{})
		require.NoError(t, err)
		second, err := informer.AddTypedEventHandler(handler, HandlerOptions{Coalesce: true})
		require.NoError(t, err)
		require.NoError(t, informer.RemoveEventHandler(second))
		w.start()
		w.create("a")
		w.update("a")
		cm, err := informer.Lister().ByNamespace("ns").Get("a")
		require.NoError(t, err)
		assert.Equal(t, "2", cm.ResourceVersion)
		w.loseDelete("a")
		w.expireWatch()
		w.after(time.Minute)
		assert.Equal(t, []string{"add a", "update a", "delete ns/a"}, got)
		_, err = informer.Lister().ByNamespace("ns").Get("a")
		assert.EqualError(t, err, `configmaps "a" not found`)
	}, bothQueues)
}

// The watch error handler gets the error of a list.
func TestWatchErrorHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errs []error
		handle := func(_ context.Context, _ *reflector.Reflector, err error) {
			errs = append(errs, err)
		}
		server := newServer()
		away := errors.New("away")
		server.fail(away)
		informer := NewSharedIndexInformer(server, &corev1.ConfigMap{},
			Options{Reflector: reflector.Options{WatchErrorHandler: handle}})
		stop := background(informer.Run)
		synctest.Wait()
		assert.ErrorIs(t, informer.Err(), away)
		stop()
		require.Len(t, errs, 1)
		assert.ErrorIs(t, errs[0], away)
	})
}

// The pieces without an informer: a queue, a store, and a handler that is called in the goroutine
// that fills the store.
func TestController_ProcessDeltas(t *testing.T) {
	for _, inOrder := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			server, r := newServer(), newRecorder()
			server.create("a")
			content := newTestStore()
			queue := Options{InOrder: inOrder}.newQueue(nil,
				deltafifo.Options{KnownObjects: content})
			process, processBatch := ProcessDeltas(content, r)
			controller := Controller{
				Reflector: reflector.New(server, &corev1.ConfigMap{}, queue,
					reflector.Options{ResyncPeriod: time.Minute}),
				Queue: queue, Process: process, ProcessBatch: processBatch,
			}
			defer background(controller.Run)()
			synctest.Wait()
			assert.True(t, queue.HasSynced())
			server.update("a")
			time.Sleep(time.Minute + time.Second)
			server.delete("a", false)
			synctest.Wait()
			assert.Equal(t, []string{"initial a", "update a", "resync a", "delete a"}, r.take())
			assert.Empty(t, content.List())
		})
	}
}

// Changes that arrive while the store is busy are one batch, if there is a function for batches.
func TestController_Batches(t *testing.T) {
	for _, batches := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var lens []int
			server := newServer()
			queue := deltafifo.NewRealFIFO(deltafifo.Options{
				AtomicEvents: true, UnlockWhileProcessing: true,
			})
			controller := Controller{
				Reflector: reflector.New(server, nil, queue, reflector.Options{}),
				Queue:     queue,
				Process: func(any, bool) error {
					lens = append(lens, 1)
					time.Sleep(time.Second)
					return nil
				},
			}
			want := []int{1, 1, 1, 1}
			if batches {
				want = []int{1, 3}
				controller.ProcessBatch = func(deltas []deltafifo.Delta, _ bool) error {
					lens = append(lens, len(deltas))
					return nil
				}
			}
			stop := background(controller.Run)
			synctest.Wait() // it processes the list
			for _, name := range []string{"a", "b", "c"} {
				server.create(name)
			}
			time.Sleep(time.Minute)
			stop()
			assert.Equal(t, want, lens)
		})
	}
}

// A Controller works with any queue and any process function.
func TestController_OwnProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		server.create("a")
		var popped []deltafifo.DeltaType
		queue := deltafifo.NewDeltaFIFO(deltafifo.Options{EmitDeltaTypeReplaced: true})
		controller := Controller{
			Reflector: reflector.New(server, nil, queue, reflector.Options{}),
			Queue:     queue,
			Process: func(obj any, _ bool) error {
				popped = append(popped, obj.(deltafifo.Deltas).Newest().Type)
				return errors.New("is logged, and does not end the loop")
			},
		}
		defer background(controller.Run)()
		synctest.Wait()
		server.update("a")
		synctest.Wait()
		assert.Equal(t, []deltafifo.DeltaType{deltafifo.Replaced, deltafifo.Updated}, popped)
	})
}

// collected changes object a and reports whether the version that was stored before can then be
// collected.
func (w *world) collected() bool {
	stored := func() *corev1.ConfigMap {
		obj, _, _ := w.ours().GetStore().GetByKey("ns/a")
		return obj.(*corev1.ConfigMap)
	}
	old := weak.Make(stored())
	w.update("a")
	w.update("a")
	w.server.mu.Lock()
	w.server.log = nil
	w.server.mu.Unlock()
	for range 3 {
		runtime.GC()
	}
	runtime.KeepAlive(w)
	return old.Value() == nil
}

// Objects that were delivered and are no longer stored can be collected.
func TestDeliveredObjectsAreCollected(t *testing.T) {
	for _, o := range []HandlerOptions{{}, {Coalesce: true}} {
		story(t, func(w *world) {
			w.create("a")
			w.create("b")
			w.start()
			assert.True(t, w.collected())
		}, bothQueues, withHandler(o))
	}
}

// A removed handler that never returns, and its handle, keep no later objects alive.
func TestRemovedHandlerHoldsNothing(t *testing.T) {
	story(t, func(w *world) {
		w.start()
		stuck := newRecorder()
		stuck.block = make(chan struct{})
		defer close(stuck.block)
		h := w.add(stuck, HandlerOptions{})
		w.create("a")
		require.NoError(t, w.informer.removeHandler(h.registration))
		w.update("a")
		assert.True(t, w.collected())
		runtime.KeepAlive(h)
	}, bothQueues)
}

// Without SkipPanics, a handler's panic ends the process.
func TestHandlerPanic_EndsTheProcess(t *testing.T) {
	if os.Getenv("HANDLER_PANICS") == "yes" {
		story(t, func(w *world) {
			w.handler.panics = map[string]bool{"add a": true}
			w.start()
			w.create("a")
		}, only(ours))
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestHandlerPanic_EndsTheProcess$")
	cmd.Env = append(os.Environ(), "HANDLER_PANICS=yes")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(out), "panic: handler panics at add a")
}

// A slow handler with many pending changes is logged, and gets each of them. With few of them it
// may take its time.
func TestSlowHandlerIsLogged(t *testing.T) {
	var config = ktesting.NewConfig(ktesting.BufferLogs(true))
	logger := ktesting.NewLogger(ktesting.NopTL{}, config)
	log := logger.GetSink().(ktesting.Underlier).GetBuffer()
	story(t, func(w *world) {
		w.start()
		w.handler.slow = time.Second
		burst := func(changes int) {
			for range changes / 2 {
				w.server.create("a")
				w.server.delete("a", false)
			}
			w.after(time.Hour)
			want := slices.Repeat([]string{"add a", "delete a"}, changes/2)
			require.Equal(t, want, w.handler.take())
		}
		burst(slowBacklogLen)
		assert.Empty(t, log.String())
		burst(2 * slowBacklogLen)
	}, only(ours), withHandler(HandlerOptions{Logger: &logger}))
	assert.Contains(t, log.String(), `Slow event handler handler="*informer.recorder" took="1s"`)
}

// Removed handlers and stopped informers leave no goroutine behind.
func TestNoGoroutineSurvives(t *testing.T) {
	before := runtime.NumGoroutine()
	informer := NewSharedIndexInformer(newServer(), &corev1.ConfigMap{}, Options{})
	stop := background(informer.Run)
	require.NoError(t, WaitForSync(t.Context(), informer))
	running := runtime.NumGoroutine()
	for range 50 {
		handle, err := informer.AddEventHandler(newRecorder())
		require.NoError(t, err)
		require.NoError(t, informer.RemoveEventHandler(handle))
		<-handle.ShutdownChan()
	}
	// A goroutine counts until it has returned, and those of the watch may begin after the sync.
	atMost := func(n int) {
		assert.Eventually(t, func() bool { return runtime.NumGoroutine() <= n }, time.Minute,
			time.Millisecond)
	}
	atMost(running + 10)
	stop()
	atMost(before + 1) // the function that counts
}
