// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/informer"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
	"example.com/informerstack/store/compact"
)

func in(namespaces ...string) func(*Options) {
	return func(o *Options) { o.Namespaces = namespaces }
}

// A namespace that comes is listed alone. One that goes takes its objects along, as tombstones.
func TestStory_NamespacesComeAndGo(t *testing.T) {
	story(t, func(w *world) {
		w.create("a/x")
		w.create("b/y")
		w.create("c/z")
		w.start()
		w.handlerSaw("add a/x@1 (initial)")
		w.add("b")
		w.handlerSaw("add b/y@2")
		w.update("b/y")
		w.handlerSaw("update b/y@4")
		w.remove("a")
		w.handlerSaw("tombstone a/x@1")
		w.update("a/x")
		w.handlerSaw()
		w.add("a")
		w.handlerSaw("add a/x@5")
		w.holds()
		assert.Equal(w.t, 1, w.server.spaces["b"].lists)
	}, in("a"))
}

// HasSynced waits for the namespaces of the start, and for no other.
func TestStory_SyncedWithTheNamespacesOfTheStart(t *testing.T) {
	story(t, func(w *world) {
		w.create("a/x")
		w.create("b/y")
		w.server.hang("b")
		w.start()
		w.update("a/x")
		w.handlerSaw("add a/x@1 (initial)", "update a/x@3")
		assert.False(w.t, w.informer.HasSynced())
		w.server.hang("c")
		w.add("c")
		w.heal("b")
		w.handlerSaw("add b/y@2 (initial)")
		assert.True(w.t, w.informer.HasSynced())
		assert.True(w.t, w.synced.HasSynced())
		assert.False(w.t, w.status("c").HasSynced)
	}, in("a", "b"))
}

// A namespace that is removed before its list arrives is not awaited.
func TestStory_ANamespaceThatGoesIsNotAwaited(t *testing.T) {
	story(t, func(w *world) {
		w.server.hang("b")
		w.start()
		assert.False(w.t, w.informer.HasSynced())
		w.remove("b")
		w.settle()
		assert.True(w.t, w.informer.HasSynced())
	}, in("a", "b"))
}

// A namespace that is forbidden, sick or silent delays no other. Health has its name.
func TestStory_ASickNamespaceDelaysNoOther(t *testing.T) {
	for _, trouble := range []func(w *world){
		func(w *world) { w.fail("b", errForbidden) },
		func(w *world) { w.fail("b", errSick) },
		func(w *world) { w.server.hang("b") },
	} {
		story(t, func(w *world) {
			w.create("a/x")
			w.create("b/y")
			w.start()
			w.handlerSaw("add a/x@1 (initial)", "add b/y@2 (initial)")
			trouble(w)
			began := time.Now()
			for range 100 {
				w.update("a/x")
				w.after(10 * time.Second)
				w.server.bookmark()
			}
			w.after(5 * time.Second)
			require.NoError(w.t, w.set.WaitForResourceVersionIn(w.t.Context(), "a", "102"))
			h := w.informer.Health()
			assert.Equal(w.t, "2", h.ResourceVersion)
			assert.False(w.t, h.CurrentAsOf.After(began))
			assert.Error(w.t, h.Fresh(time.Now(), time.Minute))
			assert.WithinDuration(w.t, time.Now(), w.status("a").CurrentAsOf, 20*time.Second)
			w.heal("b")
			w.after(time.Minute)
			w.server.bookmark()
			w.after(5 * time.Second)
			assert.NoError(w.t, w.informer.Health().Fresh(time.Now(), time.Minute))
			assert.Equal(w.t, "102", w.informer.Health().ResourceVersion)
			w.holds()
		}, in("a", "b"))
	}
}

// A namespace that may not be read is left out if that is tolerated, until it may be read.
func TestStory_ForbiddenIsTolerated(t *testing.T) {
	story(t, func(w *world) {
		w.create("a/x")
		w.create("b/y")
		w.server.fail("b", errForbidden)
		w.start()
		w.handlerSaw("add a/x@1 (initial)")
		assert.True(w.t, w.informer.HasSynced())
		assert.True(w.t, w.status("b").LeftOut)
		assert.ErrorContains(w.t, w.status("b").Reflector.LastError, "no role")
		assert.NoError(w.t, w.informer.Health().Fresh(time.Now(), time.Minute))
		assert.NoError(w.t, w.informer.Err())
		err := w.set.WaitForResourceVersionIn(w.t.Context(), "b", "1")
		assert.ErrorContains(w.t, err, "left out")
		w.heal("b")
		w.after(time.Minute)
		w.handlerSaw("add b/y@2")
		assert.False(w.t, w.status("b").LeftOut)
		w.fail("b", errForbidden) // the role is taken away, and the watch ends
		w.after(time.Minute)
		w.handlerSaw("tombstone b/y@2")
		assert.True(w.t, w.status("b").LeftOut)
		w.heal("b")
		w.after(time.Minute)
		w.handlerSaw("add b/y@2")
		w.holds()
	}, in("a", "b"), tolerant)
}

// A namespace that is forbidden is left out from then on, even if its next request hangs.
func TestStory_ForbiddenThenSilent(t *testing.T) {
	var w *world
	hanging := func(o *Options) {
		o.Tolerate = func(namespace string, err error) bool {
			w.server.hang(namespace)
			return Forbidden(namespace, err)
		}
	}
	story(t, func(created *world) {
		w = created
		w.create("b/y")
		w.start()
		w.fail("b", errForbidden) // the watch cannot be opened again
		w.heal("b")
		w.fail("b", errForbidden) // it cannot be listed
		w.after(time.Minute)
		w.handlerSaw("add b/y@1 (initial)", "tombstone b/y@1")
		assert.True(w.t, w.status("b").LeftOut)
		assert.NoError(w.t, w.informer.Health().Fresh(time.Now(), time.Minute))
	}, in("b"), hanging)
}

// By default, a namespace that is forbidden keeps the informer from being ready, and its objects
// stay.
func TestStory_ForbiddenIsRequired(t *testing.T) {
	story(t, func(w *world) {
		w.create("a/x")
		w.server.fail("b", errForbidden)
		w.start()
		assert.False(w.t, w.informer.HasSynced())
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
		defer cancel()
		err := informer.WaitForSync(ctx, w.synced)
		assert.ErrorContains(w.t, err, `namespace "b"`)
		assert.ErrorContains(w.t, err, "no role")
		w.heal("b")
		w.after(time.Minute)
		assert.True(w.t, w.informer.HasSynced())
		w.create("b/y")
		w.fail("b", errForbidden)
		w.after(time.Hour)
		w.holds()
		assert.Contains(w.t, w.stored(), "b/y@2")
		assert.ErrorContains(w.t, w.informer.Health().Fresh(time.Now(), time.Minute), `namespace "b"`)
	}, in("a", "b"))
}

// The list of a namespace that was removed arrives too late. Added again, it has all its objects.
func TestStory_RemovedWhileItsListRuns(t *testing.T) {
	story(t, func(w *world) {
		w.start()
		w.create("b/y")
		w.server.hang("b")
		w.add("b")
		w.settle()
		w.remove("b")
		w.heal("b")
		w.handlerSaw()
		w.add("b")
		w.handlerSaw("add b/y@1")
	}, in("a"))
}

// A namespace is removed and added again at once, while its deletes are queued.
func TestStory_AddedAgainBehindItsDeletes(t *testing.T) {
	story(t, func(w *world) {
		w.create("b/y")
		w.start()
		w.handlerSaw("add b/y@1 (initial)")
		for range 100 {
			w.remove("b")
			w.add("b")
		}
		w.after(time.Second)
		w.holds()
		w.checkHandler()
		assert.Equal(w.t, "add b/y@1", w.handler.calls[len(w.handler.calls)-1])
	}, in("a", "b"))
}

// A store that refuses an object of one namespace makes that one list again, and no other.
func TestStory_ALostChangeConcernsItsNamespace(t *testing.T) {
	story(t, func(w *world) {
		w.create("a/x")
		w.create("b/y")
		w.start()
		w.handlerSaw("add a/x@1 (initial)", "add b/y@2 (initial)")
		w.store.refuse("b", 1)
		w.update("b/y")
		assert.True(w.t, w.status("b").CurrentAsOf.IsZero())
		assert.False(w.t, w.status("a").CurrentAsOf.IsZero())
		w.after(time.Minute)
		w.handlerSaw("update b/y@3")
		assert.Equal(w.t, 1, w.server.spaces["a"].lists)
		assert.Equal(w.t, 2, w.server.spaces["b"].lists)
		w.store.refuse("b", 1)
		w.remove("b") // the delete fails, too
		w.after(time.Minute)
		w.handlerSaw("tombstone b/y@3")
		w.holds()
	}, in("a", "b"))
}

// A caller reads its own write in one namespace at once. All namespaces take a bookmark.
func TestStory_WaitForAVersion(t *testing.T) {
	story(t, func(w *world) {
		w.create("b/y")
		w.start()
		version := strconv.Itoa(w.server.put("a/x"))
		require.NoError(w.t, w.set.WaitForResourceVersionIn(w.t.Context(), "a", version))
		assert.Equal(w.t, []string{"a/x@2", "b/y@1"}, w.stored())
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		err := w.informer.WaitForResourceVersion(ctx, version)
		var behind *informer.BehindError
		require.ErrorAs(w.t, err, &behind)
		assert.Contains(w.t, behind.Informer, "namespace b")
		w.server.hang("c")
		reached := make(chan error, 1)
		go func() { reached <- w.informer.WaitForResourceVersion(w.t.Context(), version) }()
		w.settle()
		w.set.Add("c")
		w.server.bookmark() // of a and b
		w.settle()
		assert.Empty(w.t, reached)
		w.heal("c")
		w.after(time.Minute)
		require.NoError(w.t, <-reached)
		err = w.set.WaitForResourceVersionIn(w.t.Context(), "d", "1")
		assert.ErrorContains(w.t, err, "not in the set")
		require.Error(w.t, w.informer.WaitForResourceVersion(w.t.Context(), "x"))
		time.AfterFunc(time.Minute, func() { w.set.Remove("c") })
		err = w.set.WaitForResourceVersionIn(w.t.Context(), "c", "9")
		assert.ErrorContains(w.t, err, "removed")
	}, in("a", "b"))
}

// Without a namespace there is nothing to wait for.
func TestStory_EmptySet(t *testing.T) {
	story(t, func(w *world) {
		w.start()
		assert.True(w.t, w.informer.HasSynced())
		assert.NoError(w.t, w.informer.Health().Fresh(time.Now(), 0))
		assert.NoError(w.t, w.informer.WaitForResourceVersion(w.t.Context(), "7"))
		assert.Empty(w.t, w.informer.Health().ResourceVersion)
		w.server.hang("a")
		w.add("a")
		assert.Error(w.t, w.informer.Health().Fresh(time.Now(), time.Hour))
		w.remove("a")
	})
}

// Resyncs replay the objects of all namespaces.
func TestStory_Resync(t *testing.T) {
	story(t, func(w *world) {
		w.create("a/x")
		w.create("b/y")
		w.start()
		w.add("b")
		w.handlerSaw("add a/x@1 (initial)", "add b/y@2")
		w.after(61 * time.Second)
		w.handlerSaw("update a/x@1", "update b/y@2")
	}, in("a"), func(o *Options) { o.ResyncPeriod = time.Minute })
}

// Namespaces are followed by their labels. HasSynced waits for the first list of them.
func TestStory_SelectNamespaces(t *testing.T) {
	story(t, func(w *world) {
		for _, key := range []string{"a/x", "b/y", "c/z"} {
			w.create(key)
		}
		namespaces := watch.NewRaceFreeFake()
		labelled := func(name, team string) *corev1.Namespace {
			return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
				Name: name, Labels: map[string]string{"team": team}, ResourceVersion: "1",
			}}
		}
		listing := make(chan struct{})
		source := informer.NewSharedIndexInformer(&listWatch{reflector.ListWatch{
			ListWithContextFunc: func(
				context.Context, metav1.ListOptions,
			) (runtime.Object, error) {
				<-listing
				list := &corev1.NamespaceList{}
				list.ResourceVersion = "1"
				list.Items = []corev1.Namespace{*labelled("a", "red"), *labelled("b", "blue")}
				return list, nil
			},
			WatchFuncWithContext: func(
				context.Context, metav1.ListOptions,
			) (watch.Interface, error) {
				return namespaces, nil
			},
		}}, &corev1.Namespace{}, informer.Options{})
		red, err := labels.Parse("team=red")
		require.NoError(w.t, err)
		require.NoError(w.t, w.set.Select(source, red))
		ctx, cancel := context.WithCancel(w.t.Context())
		defer cancel()
		go source.Run(ctx)
		w.start()
		assert.False(w.t, w.informer.HasSynced())
		close(listing)
		w.handlerSaw("add a/x@1 (initial)")
		assert.True(w.t, w.informer.HasSynced())
		namespaces.Add(labelled("c", "red"))
		w.handlerSaw("add c/z@3")
		namespaces.Modify(labelled("b", "red"))
		w.handlerSaw("add b/y@2")
		namespaces.Modify(labelled("a", "blue"))
		w.handlerSaw("tombstone a/x@1")
		namespaces.Delete(labelled("c", "red"))
		w.handlerSaw("tombstone c/z@3")
		assert.Equal(w.t, []string{"b"}, w.set.Names())
	})
}

// A form packs the objects of all namespaces.
func TestStory_CompressedObjects(t *testing.T) {
	story(t, func(w *world) {
		w.create("a/x")
		w.create("b/y")
		w.start()
		w.add("b")
		w.handlerSaw("add a/x@1 (initial)", "add b/y@2")
		w.expireWatch("b")
		w.delete("b/y")
		w.create("b/z")
		w.after(time.Minute)
		w.handlerSaw("tombstone b/y@2", "add b/z@4")
		w.remove("a")
		w.handlerSaw("tombstone a/x@1")
		w.holds()

		stored := w.informer.GetStore()
		assert.Equal(w.t, len(stored.ListKeys()), stored.(store.Counter).Len())
		inside := stored.(interface{ Unwrap() store.Indexer }).Unwrap()
		assert.Implements(w.t, (*interface{ Packed() store.Indexer })(nil), inside,
			"sizes and typed indexers look inside")
	}, in("a"), func(o *Options) { o.Form = compact.Compressed() })
}

// A handler may change the set.
func TestStory_AHandlerChangesTheSet(t *testing.T) {
	story(t, func(w *world) {
		w.create("a/b")
		w.create("b/y")
		_, err := w.informer.AddEventHandler(informer.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) {
				if o := obj.(*corev1.ConfigMap); o.Namespace == "a" {
					w.set.Replace("a", o.Name)
				}
			},
		})
		require.NoError(w.t, err)
		w.start()
		w.after(time.Second)
		assert.Equal(w.t, []string{"a/b@1", "b/y@2"}, w.stored())
		assert.Equal(w.t, []string{"a", "b"}, w.set.Names())
		require.NoError(w.t, w.informer.RemoveEventHandler(w.synced))
		w.update("a/b")
		assert.Len(w.t, w.handler.calls, 2)
	}, in("a"))
}
