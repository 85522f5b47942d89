// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The objects that exist at the start arrive as adds of the initial list. Later objects do not.
func TestStory_InitialListThenLive(t *testing.T) {
	story(t, func(w *world) {
		w.create("a")
		w.create("b")
		w.start()
		w.handlerSaw("initial a", "initial b")
		w.create("c")
		w.update("a")
		w.delete("b")
		w.handlerSaw("add c", "update a", "delete b")
		assert.Equal(t, w.onServer(), w.stored())
	})
}

// A watch that ends cleanly is resumed: no relist, no duplicate event.
func TestStory_CutWatchResumes(t *testing.T) {
	story(t, func(w *world) {
		w.create("a")
		w.start()
		w.after(10 * time.Second)
		w.handlerSaw("initial a")
		w.server.cut()
		w.update("a")
		w.after(time.Minute)
		w.handlerSaw("update a")
		lists, _ := w.server.requests()
		assert.Equal(t, 1, lists)
	})
}

// An expired watch (410 Gone) may hide a delete: the relist reports a tombstone. Unchanged objects
// of the relist are not updates.
func TestStory_LostDeleteBecomesTombstone(t *testing.T) {
	story(t, func(w *world) {
		w.create("a")
		w.create("b")
		w.start()
		w.handlerSaw("initial a", "initial b")
		w.loseDelete("a")
		w.handlerSaw()
		w.expireWatch()
		w.after(time.Minute)
		if w.impl == ours {
			w.handlerSaw("unchanged b", "tombstone a") // a DeltaFIFO queues listed objects first
		} else {
			w.handlerSaw("tombstone a", "unchanged b")
		}
		assert.Equal(t, []string{"b@2"}, w.stored())
	})
}

// A handler that asserts the object's type works for months, and then panics at a tombstone.
func TestStory_NaiveCastPanicsOnTombstone(t *testing.T) {
	story(t, func(w *world) {
		naive := ResourceEventHandlerFuncs{
			DeleteFunc: func(obj any) {
				w.narrate.Event("handler", "naive OnDelete of a %T", obj)
				_ = obj.(*corev1.ConfigMap).Name
			},
		}
		handle, err := w.informer.addHandler(naive, HandlerOptions{SkipPanics: true})
		require.NoError(t, err)
		panics := func() int { return handle.(ResourceEventHandlerRegistration).Status().Panics }
		w.create("a")
		w.create("b")
		w.start()
		w.delete("b")
		assert.Zero(t, panics())
		w.loseDelete("a")
		w.expireWatch()
		w.after(time.Minute)
		w.narrate.Event("handler", "panics: %d", panics())
		assert.Equal(t, 1, panics())
	}, bothQueues)
}

// A resync replays the store from memory and sends no request.
func TestStory_ResyncIsNotARelist(t *testing.T) {
	story(t, func(w *world) {
		w.create("a")
		w.create("b")
		w.start()
		w.handlerSaw("initial a", "initial b")
		w.after(time.Minute + time.Second)
		w.handlerSaw("resync a", "resync b")
		w.after(time.Minute)
		w.handlerSaw("resync a", "resync b")
		lists, watches := w.server.requests()
		assert.Equal(t, 1, lists)
		assert.Equal(t, 1, watches)
	}, resyncEvery(time.Minute))
}

// A late handler is first notified of the content of the store.
func TestStory_LateHandlerGetsReplay(t *testing.T) {
	story(t, func(w *world) {
		w.create("a")
		w.create("b")
		w.start()
		w.update("b")
		w.create("c")
		late := w.addHandler(HandlerOptions{})
		late.saw("initial a", "initial b", "initial c")
		assert.True(t, late.HasSynced())
		w.delete("a")
		late.saw("delete a")
	})
}

// The informer has synced when the store holds the list; a handler, when it was notified of the
// list.
func TestStory_HandlerSyncsAfterInformer(t *testing.T) {
	story(t, func(w *world) {
		for _, name := range []string{"a", "b", "c"} {
			w.create(name)
		}
		w.handler.block = make(chan struct{})
		assert.False(t, w.informer.HasSynced())
		w.start()
		assert.True(t, w.informer.HasSynced())
		assert.False(t, w.handler.HasSynced())
		close(w.handler.block)
		w.settle()
		assert.True(t, w.handler.HasSynced())
	})
}

// An unseen delete and re-creation is an update of objects with different UIDs.
func TestStory_UnseenRecreationIsAnUpdate(t *testing.T) {
	story(t, func(w *world) {
		w.create("a")
		w.start()
		w.handlerSaw("initial a")
		w.loseDelete("a")
		w.server.fail(apierrors.NewServiceUnavailable("away"))
		w.expireWatch()
		w.create("a")
		w.server.fail(nil)
		w.after(time.Minute)
		w.handlerSaw("update a")
	})
}

// A blocked handler delays neither the store nor the other handlers.
func TestStory_BlockedHandlerHarmsOnlyItself(t *testing.T) {
	story(t, func(w *world) {
		w.handler.block = make(chan struct{})
		other := w.addHandler(HandlerOptions{})
		w.start()
		for range 3 {
			w.create("a")
			w.delete("a")
		}
		w.create("a")
		other.saw("add a", "delete a", "add a", "delete a", "add a", "delete a", "add a")
		assert.Equal(t, w.onServer(), w.stored())
		w.handlerSaw()
		close(w.handler.block)
		w.handlerSaw("add a", "delete a", "add a", "delete a", "add a", "delete a", "add a")
	})
}

// A removed handler is not called again, and its pending changes are dropped.
func TestStory_RemovedHandlerHearsNothing(t *testing.T) {
	story(t, func(w *world) {
		w.start()
		other := w.addHandler(HandlerOptions{})
		w.create("a")
		w.handlerSaw("add a")
		w.handler.block = make(chan struct{})
		w.update("a")
		w.update("a")
		require.NoError(t, w.informer.removeHandler(w.handler.registration))
		if l, ok := w.handler.registration.(*listener); ok {
			require.Zero(t, l.Status().Pending, "dropped at once")
		}
		w.update("a")
		close(w.handler.block)
		w.handlerSaw("update a") // the running call
		other.saw("add a", "update a", "update a", "update a")
		require.NoError(t, w.informer.removeHandler(w.handler.registration), "twice does no harm")
	})
}

// When an informer stops, pending changes are dropped, and Run waits for running calls.
func TestStory_StopDropsWhatWaits(t *testing.T) {
	story(t, func(w *world) {
		w.start()
		w.handler.slow = time.Minute
		for _, name := range []string{"a", "b", "c"} {
			w.create(name)
		}
		began := time.Now()
		w.stop()
		assert.Equal(t, time.Minute, time.Since(began))
		w.handlerSaw("add a")
		assert.True(t, w.informer.IsStopped())
		assert.Zero(t, w.server.openWatches())
	})
}

// A stopped informer accepts no handlers and does not run again.
func TestStory_StoppedForGood(t *testing.T) {
	story(t, func(w *world) {
		w.start()
		w.stop()
		_, err := w.informer.addHandler(newRecorder(), HandlerOptions{})
		require.ErrorContains(t, err,
			"was not added to shared informer because it has stopped already")
		lists, _ := w.server.requests()
		w.start()
		w.stop()
		again, _ := w.server.requests()
		assert.Equal(t, lists, again)
	})
}

// A handler may add and remove handlers, also itself.
func TestStory_HandlerUsesItsInformer(t *testing.T) {
	story(t, func(w *world) {
		var second *handler
		w.handler.onCall = func(line string) {
			switch line {
			case "add a":
				second = w.add(newRecorder(), HandlerOptions{})
			case "add b":
				assert.NoError(t, w.informer.removeHandler(w.handler.registration))
			}
			w.informer.HasSynced()
			w.informer.IsStopped()
			w.informer.LastSyncResourceVersion()
		}
		w.start()
		w.create("a")
		second.saw("initial a")
		w.create("b")
		w.create("c")
		w.handlerSaw("add a", "add b")
		second.saw("add b", "add c")
	})
}

// Objects are not copied: a modification of a stored object is visible to all readers.
func TestStory_ObjectsAreShared(t *testing.T) {
	story(t, func(w *world) {
		var seen *corev1.ConfigMap
		_, err := w.informer.addHandler(ResourceEventHandlerFuncs{
			AddFunc: func(obj any) { seen = obj.(*corev1.ConfigMap) },
		}, HandlerOptions{})
		require.NoError(t, err)
		w.create("a")
		w.start()
		stored := w.informer.objects()[0].(*corev1.ConfigMap)
		stored.Data = map[string]string{"scribbled": "here"} // never do this: DeepCopy first
		w.narrate.Event("store", "a reader modifies the object that it got from the store")
		w.narrate.Event("handler", "its object has changed too: %v", seen.Data)
		assert.Equal(t, "here", seen.Data["scribbled"])
	})
}

// A filter of a handler saves calls, not memory. A transform saves memory.
func TestStory_FilterDoesNotShrinkTheStore(t *testing.T) {
	story(t, func(w *world) {
		r := newRecorder()
		r.narrate, r.name = w.narrate, "filtered: "
		_, err := w.informer.addHandler(FilteringResourceEventHandler{
			FilterFunc: func(obj any) bool { name, _ := describe(obj); return name == "b" },
			Handler:    r,
		}, HandlerOptions{})
		require.NoError(t, err)
		for _, name := range []string{"a", "b", "c"} {
			w.create(name)
		}
		w.start()
		assert.Equal(t, []string{"initial b"}, r.take())
		assert.Len(t, w.stored(), 3)
	})
}
