// SPDX-License-Identifier: Apache-2.0

package adapt_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/compat/adapt"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/narrate"
	"example.com/informerstack/reflector"
)

// each runs a test once for every implementation, in a bubble.
func each(t *testing.T, test func(t *testing.T, create constructor)) {
	for name, create := range impls {
		t.Run("impl="+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, create) })
		})
	}
}

func TestStory_LifeOfAnInformer(t *testing.T) {
	each(t, func(t *testing.T, create constructor) {
		source := newSource(t, pod("a", "n1"))
		i := create(source, &corev1.Pod{}, 0, cache.Indexers{})
		seen := log{narrate: narrate.New(t)}
		registration, err := i.AddEventHandler(seen.handler())
		require.NoError(t, err)
		require.False(t, i.HasSynced())
		require.False(t, cache.IsDone(i.HasSyncedChecker()))
		require.Equal(t, "SharedIndexInformer *v1.Pod", i.HasSyncedChecker().Name())
		require.Contains(t, registration.HasSyncedChecker().Name(),
			"SharedIndexInformer *v1.Pod + event handler ")
		require.False(t, i.IsStopped())
		require.Empty(t, i.LastSyncResourceVersion())

		stop := run(t, i)
		defer stop()
		require.True(
			t,
			cache.WaitFor(t.Context(), "", i.HasSyncedChecker(), registration.HasSyncedChecker(),
				i.GetController().HasSyncedChecker()),
		)
		require.True(t, i.HasSynced())
		require.True(t, registration.HasSynced())
		require.True(t, i.GetController().HasSynced())
		require.Equal(t, []string{"add a@1 initial=true"}, seen.take())

		source.Add(pod("b", "n1"))
		source.Modify(pod("a", "n2"))
		synctest.Wait()
		source.Delete(pod("b", "n1"))
		synctest.Wait()
		require.Equal(t, []string{"add b@2 initial=false", "update a@1 to a@3", "delete b@4"},
			seen.take())
		require.Equal(t, "4", i.LastSyncResourceVersion())
		require.Equal(t, "4", i.GetController().LastSyncResourceVersion())

		require.ErrorContains(t, i.SetTransform(nil), "informer has already started")
		require.ErrorContains(t, i.SetWatchErrorHandler(nil), "informer has already started")
		require.ErrorContains(t, i.SetWatchErrorHandlerWithContext(nil),
			"informer has already started")

		stop()
		require.True(t, i.IsStopped())
		_, err = i.AddEventHandler(seen.handler())
		require.ErrorContains(t, err,
			"was not added to shared informer because it has stopped already")
		require.ErrorContains(t, i.AddIndexers(cache.Indexers{"name": byName}), "stopped already")
	})
}

// The older spelling, with a stop channel.
func TestRun_UntilTheChannelIsClosed(t *testing.T) {
	each(t, func(t *testing.T, create constructor) {
		i := create(newSource(t), &corev1.Pod{}, 0, cache.Indexers{})
		stopCh, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			i.Run(stopCh)
		}()
		require.True(t, cache.WaitForCacheSync(stopCh, i.HasSynced))
		close(stopCh)
		<-done
		require.True(t, i.IsStopped())
	})
}

// A delete that a broken watch hid arrives as client-go's tombstone, also behind a filter.
func TestStory_TombstoneIsClientGos(t *testing.T) {
	each(t, func(t *testing.T, create constructor) {
		source := newSource(t, pod("a", "n1"))
		i := create(source, &corev1.Pod{}, 0, cache.Indexers{})
		seen, filtered := log{narrate: narrate.New(t)}, log{}
		_, err := i.AddEventHandler(seen.handler())
		require.NoError(t, err)
		_, err = i.AddEventHandler(cache.FilteringResourceEventHandler{
			FilterFunc: func(obj any) bool { return name(obj) != "" },
			Handler:    filtered.handler(),
		})
		require.NoError(t, err)
		defer run(t, i)()
		synctest.Wait()
		seen.take()
		filtered.take()
		seen.narrate.Event("server", "delete a, in no event; end the watch")
		source.DeleteDropWatch(pod("a", "n1"))
		source.ResetWatch()
		time.Sleep(time.Minute)
		require.Equal(t, []string{"delete tombstone of a@1"}, seen.take())
		require.Equal(t, []string{"delete tombstone of a@1"}, filtered.take())
	})
}

func TestHandlers_ComeAndGo(t *testing.T) {
	each(t, func(t *testing.T, create constructor) {
		source := newSource(t, pod("a", "n1"))
		i := create(source, &corev1.Pod{}, 0, cache.Indexers{})
		defer run(t, i)()
		synctest.Wait()
		seen := log{narrate: narrate.New(t)}
		registration, err := i.AddEventHandlerWithOptions(seen.handler(), cache.HandlerOptions{})
		require.NoError(t, err)
		synctest.Wait()
		require.Equal(t, []string{"add a@1 initial=true"}, seen.take())
		require.True(t, registration.HasSynced())
		other, err := i.AddEventHandler(seen.handler())
		require.NoError(t, err)
		require.False(t, registration == other, "handles of two handlers are equal")
		require.True(t, registration == registration)
		synctest.Wait()
		seen.take()

		require.NoError(t, i.RemoveEventHandler(other))
		require.NoError(t, i.RemoveEventHandler(other), "it was removed before")
		source.Modify(pod("a", "n1"))
		synctest.Wait()
		require.Equal(t, []string{"update a@1 to a@2"}, seen.take())
		require.NoError(t, i.RemoveEventHandler(registration))
		source.Modify(pod("a", "n1"))
		synctest.Wait()
		require.Empty(t, seen.take())

		require.ErrorContains(t, i.RemoveEventHandler(nil), "invalid key type")
		require.ErrorContains(t, i.RemoveEventHandler(&foreignHandle{}), "invalid key type")
	})
}

type foreignHandle struct {
	cache.ResourceEventHandlerRegistration
}

// client-go 0.37's cache.ShutDownEventHandler waits for this channel.
func TestHandlers_TellWhenTheyHaveEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := adapt.NewSharedIndexInformer(newSource(t, pod("a", "n1")), &corev1.Pod{}, 0,
			cache.Indexers{})
		defer run(t, i)()
		registration, err := i.AddEventHandler(
			cache.ResourceEventHandlerFuncs{AddFunc: func(any) { time.Sleep(time.Second) }},
		)
		require.NoError(t, err)
		synctest.Wait()
		require.NoError(t, i.RemoveEventHandler(registration))
		start := time.Now()
		<-registration.(interface{ ShutdownChan() <-chan struct{} }).ShutdownChan()
		require.Equal(t, time.Second, time.Since(start))
	})
}

func TestHandlers_NilIsAnError(t *testing.T) {
	i := adapt.NewSharedIndexInformer(&cache.ListWatch{}, &corev1.Pod{}, 0, cache.Indexers{})
	registration, err := i.AddEventHandler(nil)
	require.ErrorContains(t, err, "handler is nil")
	require.True(t, registration == nil)
}

func TestResync_ByInformerByHandlerByOptions(t *testing.T) {
	each(t, func(t *testing.T, create constructor) {
		i := create(newSource(t, pod("a", "n1")), &corev1.Pod{}, time.Minute, cache.Indexers{})
		var byInformer, byHandler, byOptions, never log
		_, err := i.AddEventHandler(byInformer.handler())
		require.NoError(t, err)
		_, err = i.AddEventHandlerWithResyncPeriod(byHandler.handler(), 2*time.Minute)
		require.NoError(t, err)
		period, none := 3*time.Minute, time.Duration(0)
		_, err = i.AddEventHandlerWithOptions(byOptions.handler(),
			cache.HandlerOptions{ResyncPeriod: &period})
		require.NoError(t, err)
		_, err = i.AddEventHandlerWithOptions(never.handler(),
			cache.HandlerOptions{ResyncPeriod: &none})
		require.NoError(t, err)
		defer run(t, i)()
		time.Sleep(6*time.Minute + time.Second)
		assert.Len(t, byInformer.take(), 1+6)
		assert.Len(t, byHandler.take(), 1+3)
		assert.Len(t, byOptions.take(), 1+2)
		assert.Len(t, never.take(), 1)
	})
}

func TestTransform(t *testing.T) {
	each(t, func(t *testing.T, create constructor) {
		i := create(newSource(t, pod("a", "n1")), &corev1.Pod{}, 0, cache.Indexers{"node": byNode})
		require.NoError(t, i.SetTransform(toNode("transformed")))
		defer run(t, i)()
		synctest.Wait()
		found, err := i.GetIndexer().ByIndex("node", "transformed")
		require.NoError(t, err)
		require.Len(t, found, 1)
	})
}

// The options of a finished informer cannot be set any more. controller-runtime sets a transform
// that is nil.
func TestSharedIndexInformer_IsFinished(t *testing.T) {
	core := informer.NewSharedIndexInformer(adapt.CoreListerWatcher(failing), &corev1.Pod{},
		informer.Options{})
	i := adapt.SharedIndexInformer(core)
	require.NoError(t, i.SetTransform(nil))
	require.NoError(t, i.SetWatchErrorHandler(nil))
	require.ErrorContains(t, i.SetTransform(func(obj any) (any, error) { return obj, nil }),
		"set this in informer.Options.Reflector")
	require.ErrorContains(t, i.SetWatchErrorHandler(func(*cache.Reflector, error) {}),
		"set this in informer.Options.Reflector")
}

// A setter that is called before the start replaces the option; nil does not.
func TestNewSharedIndexInformerWithOptions_Setters(t *testing.T) {
	for _, set := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			i := adapt.NewSharedIndexInformerWithOptions(newSource(t, pod("a", "n1")),
				&corev1.Pod{}, informer.Options{
					Indexers:  adapt.CoreIndexers(cache.Indexers{"node": byNode}),
					Reflector: reflector.Options{Transform: toNode("option")},
				})
			require.NoError(t, i.SetTransform(nil))
			want := "option"
			if set {
				want = "setter"
				require.NoError(t, i.SetTransform(toNode("setter")))
			}
			defer run(t, i)()
			synctest.Wait()
			found, err := i.GetIndexer().ByIndex("node", want)
			require.NoError(t, err)
			require.Len(t, found, 1)
		})
	}
}

// failing is a server that refuses everything.
var failing = &cache.ListWatch{
	ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
		return nil, errors.New("no list today")
	},
	WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
		return nil, errors.New("no watch today")
	},
}

func TestWatchErrorHandler(t *testing.T) {
	each(t, func(t *testing.T, create constructor) {
		var seen log
		note := func(r *cache.Reflector, err error) {
			seen.note("%s: %v", r.TypeDescription(), err)
			require.NotEmpty(t, r.Name())
			require.NotContains(t, r.Name(), "adapt/informer.go",
				"the name is the caller's, not the adapter's")
			cache.DefaultWatchErrorHandler(quiet(), r, err)
		}
		for _, set := range []func(i cache.SharedIndexInformer){
			func(i cache.SharedIndexInformer) {
				require.NoError(t, i.SetWatchErrorHandler(nil))
				require.NoError(t, i.SetWatchErrorHandler(note))
			},
			func(i cache.SharedIndexInformer) {
				require.NoError(t, i.SetWatchErrorHandlerWithContext(nil))
				require.NoError(t, i.SetWatchErrorHandlerWithContext(
					func(ctx context.Context, r *cache.Reflector, err error) {
						require.NoError(t, ctx.Err())
						note(r, err)
					}))
			},
		} {
			i := create(failing, &corev1.Pod{}, 0, cache.Indexers{})
			set(i)
			stop := run(t, i)
			time.Sleep(100 * time.Millisecond)
			stop()
			require.Contains(t, seen.take()[0], "*v1.Pod: failed to list *v1.Pod: no list today")
		}
	})
}

// The reflector that a watch error handler gets is one of client-go in name only: it is the same at
// each call, and has no resourceVersion. Only the informer has.
func TestDifference_WatchErrorHandlersReflectorHasNoResourceVersion(t *testing.T) {
	for impl, create := range impls {
		if impl == "core" {
			continue
		}
		t.Run("impl="+impl, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t, pod("a", "n1"))
				broken := &cache.ListWatch{
					ListWithContextFunc: func(
						_ context.Context, options metav1.ListOptions,
					) (runtime.Object, error) {
						return source.List(options)
					},
					WatchFuncWithContext: failing.WatchFuncWithContext,
				}
				i := create(broken, &corev1.Pod{}, 0, cache.Indexers{})
				reflectors := map[*cache.Reflector]string{}
				require.NoError(t, i.SetWatchErrorHandler(func(r *cache.Reflector, _ error) {
					reflectors[r] = r.LastSyncResourceVersion()
				}))
				stop := run(t, i)
				time.Sleep(time.Minute)
				stop()
				require.Len(t, reflectors, 1)
				want := map[string]string{"ours": "", "client-go": "1"}[impl]
				for _, resourceVersion := range reflectors {
					require.Equal(t, want, resourceVersion)
				}
				require.Equal(t, "1", i.LastSyncResourceVersion())
			})
		})
	}
}

// Behind client-go's interface is an informer that reports more; it names handlers after their
// functions.
func TestCoreInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen log
		core := informer.NewSharedIndexInformer(
			adapt.CoreListerWatcher(newSource(t, pod("a", "n1"))),
			&corev1.Pod{},
			informer.Options{},
		)
		i := adapt.SharedIndexInformer(core)
		_, err := i.AddEventHandler(namedHandler)
		require.NoError(t, err)
		_, err = i.AddEventHandler(&namedHandler)
		require.NoError(t, err)
		_, err = i.AddEventHandler(cache.FilteringResourceEventHandler{
			Handler:    namedHandler,
			FilterFunc: func(any) bool { return true },
		})
		require.NoError(t, err)
		_, err = i.AddEventHandler(seen.handler())
		require.NoError(t, err)
		defer run(t, i)()
		synctest.Wait()

		same, ok := adapt.CoreInformer(i)
		require.True(t, ok)
		require.True(t, same == core)
		status := same.Status()
		require.Equal(t, 1, status.Objects)
		require.Equal(t, 1, status.Handlers[0].Calls)
		for _, handler := range status.Handlers[:3] {
			require.Equal(t, "adapt_test.named", handler.Name)
		}
		require.Contains(t, status.Handlers[3].Name, "adapt_test.")
		require.NoError(t, same.Health().Fresh(time.Now(), time.Minute))

		made, ok := adapt.CoreInformer(adapt.NewSharedIndexInformer(failing, &corev1.Pod{}, 0, nil))
		require.True(t, ok)
		require.False(t, made.Health().Started)
		_, ok = adapt.CoreInformer(cache.NewSharedIndexInformer(failing, &corev1.Pod{}, 0, nil))
		require.False(t, ok, "client-go's own")
	})
}

var namedHandler = cache.ResourceEventHandlerFuncs{AddFunc: named}

func named(any) {}
