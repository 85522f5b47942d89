// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	clientgo "k8s.io/client-go/tools/cache"

	"example.com/informerstack/compat/cache"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/tools/narrate"
)

// A program that uses only client-go's names: informer, handlers, indexes, lister, stop channel.
func TestStory_ProgramOfClientGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, "a")
		i := cache.NewSharedIndexInformer(source, &v1.Pod{}, 0, cache.Indexers{"node": byNode})
		seen := log{narrate: narrate.New(t)}
		registration, err := i.AddEventHandler(seen.handler())
		require.NoError(t, err)
		require.False(t, i.HasSynced())

		stop := run(i)
		defer stop()
		require.True(t, cache.WaitForCacheSync(nil, i.HasSynced, registration.HasSynced))
		seen.narrate.Event("informer", "has synced")
		require.Equal(t, []string{"add a@1 initial=true"}, seen.take())
		seen.narrate.Event("server", "create b, update a, delete b")
		source.Add(pod("b", 0))
		source.Modify(pod("a", 0))
		source.Delete(pod("b", 0))
		synctest.Wait()
		require.Equal(t, []string{"add b@2 initial=false", "update a@3", "delete b@4"}, seen.take())
		require.Equal(t, "4", i.LastSyncResourceVersion())
		require.Equal(t, "4", i.GetController().LastSyncResourceVersion())
		require.True(t, i.GetController().HasSynced())

		lister := cache.NewGenericLister(i.GetIndexer(), v1.Resource("pods"))
		obj, err := lister.ByNamespace("ns").Get("a")
		require.NoError(t, err)
		require.Equal(t, "a@3", name(obj))
		onNone, err := i.GetIndexer().ByIndex("node", "")
		require.NoError(t, err)
		require.Len(t, onNone, 1)

		seen.narrate.Event("handler", "is removed")
		require.NoError(t, i.RemoveEventHandler(registration))
		source.Modify(pod("a", 0))
		synctest.Wait()
		require.Empty(t, seen.take())
		stop()
		require.True(t, i.IsStopped())
		_, err = i.AddEventHandler(seen.handler())
		require.ErrorContains(t, err,
			"was not added to shared informer because it has stopped already")
	})
}

// Informers have the in-order queue: a relist delivers deletes first, then the listed objects.
func TestStory_RelistTellsDeletesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, "a")
		i := cache.NewSharedInformer(source, &v1.Pod{}, 0)
		seen := log{narrate: narrate.New(t)}
		_, err := i.AddEventHandler(seen.handler())
		require.NoError(t, err)
		defer run(i)()
		synctest.Wait()
		seen.take()
		seen.narrate.Event("server", "delete a and create b, in no event; end the watch")
		source.DeleteDropWatch(pod("a", 0))
		source.AddDropWatch(pod("b", 0))
		source.ResetWatch()
		time.Sleep(time.Minute)
		require.Equal(t, []string{"delete tombstone of a@1", "add b@3 initial=false"}, seen.take())
	})
}

// The handle is that of package informer, which reports the backlog.
func TestRegistration_TellsHowFarTheHandlerIs(t *testing.T) {
	i := cache.NewSharedInformer(newSource(t), &v1.Pod{}, 0)
	registration, err := i.AddEventHandlerWithOptions(cache.ResourceEventHandlerFuncs{},
		cache.HandlerOptions{Coalesce: true})
	require.NoError(t, err)
	status := registration.(informer.ResourceEventHandlerRegistration).Status()
	require.Zero(t, status.Pending)
	require.Len(t, i.(interface{ Status() informer.Status }).Status().Handlers, 1)
}

type foreign struct {
	cache.ResourceEventHandlerRegistration
}

func TestHandles_OfOthers(t *testing.T) {
	i := cache.NewSharedInformer(newSource(t), &v1.Pod{}, 0)
	require.ErrorContains(t, i.RemoveEventHandler(foreign{}), "invalid key type")
	require.ErrorContains(t, cache.ShutDownEventHandler(i, foreign{}), "invalid key type")

	registration, err := i.AddEventHandlerWithResyncPeriod(cache.ResourceEventHandlerFuncs{},
		time.Minute)
	require.NoError(t, err)
	require.NoError(t, cache.ShutDownEventHandler(i, registration))
	require.NoError(t, i.RemoveEventHandler(registration), "twice does no harm")
}

// Both watch error handlers get client-go's Reflector and use its name.
func TestWatchErrorHandlers(t *testing.T) {
	type key struct{}
	for _, withContext := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			i := cache.NewSharedInformer(unlistable(t), &v1.Pod{}, 0)
			ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, "value"))
			var seen log
			if withContext {
				require.NoError(t, i.SetWatchErrorHandlerWithContext(
					func(ctx context.Context, r *cache.Reflector, err error) {
						cache.DefaultWatchErrorHandler(ctx, r, io.EOF) // which it does not log
						seen.note("%v %s %s %v", ctx.Value(key{}), r.Name(),
							r.TypeDescription(), err)
					},
				))
			} else {
				require.NoError(t, i.SetWatchErrorHandler(func(r *cache.Reflector, err error) {
					seen.note("value %s %s %v", r.Name(), r.TypeDescription(), err)
				}))
			}
			go i.RunWithContext(ctx)
			synctest.Wait()
			require.Len(t, seen.lines, 1)
			require.Regexp(t, `^value .*\*v1.Pod \*v1.Pod .*no list today$`, seen.lines[0])
			require.Error(t, i.SetWatchErrorHandler(nil), "it has started")
			cancel()
			synctest.Wait()
		})
	}
}

// A handler that counts failures by reflector counts those of one informer together.
func TestWatchErrorHandler_KnowsTheReflectorAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		i := cache.NewSharedInformer(unlistable(t), &v1.Pod{}, 0)
		failures := map[*cache.Reflector]int{}
		require.NoError(t,
			i.SetWatchErrorHandler(func(r *cache.Reflector, _ error) { failures[r]++ }))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		i.RunWithContext(ctx)
		require.Len(t, failures, 1)
		for _, count := range failures {
			require.Greater(t, count, 2)
		}
	})
}

// A test of a watch error handler needs a Reflector, and any will do.
func TestReflector_ZeroHasNoName(t *testing.T) {
	r := &cache.Reflector{}
	cache.DefaultWatchErrorHandler(t.Context(), r, io.EOF)
	require.Empty(t, r.Name())
	require.Empty(t, r.TypeDescription())
	require.Empty(t, r.LastSyncResourceVersion())
}

// Tests fill the store of an informer that is not started. Its version is then that of the list.
func TestStore_FilledBeforeTheStart(t *testing.T) {
	pods := []any{podOnNode("a", 7, "node", "uid")}
	theirs := clientgo.NewSharedIndexInformer(&clientgo.ListWatch{}, &v1.Pod{}, 0, nil).GetStore()
	ours := cache.NewSharedIndexInformer(&cache.ListWatch{}, &v1.Pod{}, 0, nil).GetStore()
	require.NoError(t, theirs.Replace(pods, "9"))
	require.NoError(t, ours.Replace(pods, "9"))
	require.Equal(t, "9", theirs.LastStoreSyncResourceVersion())
	require.Equal(t, "9", ours.LastStoreSyncResourceVersion())
}

func TestTypedInformer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		source.Add(podOnNode("a", 0, "n", ""))
		typed := cache.NewTypedSharedIndexInformer[*v1.Pod](
			cache.NewSharedIndexInformer(source, &v1.Pod{}, 0, nil),
		)
		require.NoError(t, typed.AddTypedIndexers(cache.TypedIndexers[*v1.Pod]{
			"node": func(p *v1.Pod) ([]string, error) { return []string{p.Spec.NodeName}, nil },
		}))
		var seen log
		handler := cache.TypedResourceEventHandlerFuncs[*v1.Pod]{
			AddFunc:    func(p *v1.Pod) { seen.note("add %s", p.Name) },
			DeleteFunc: func(d cache.DeletedObject[*v1.Pod]) { seen.note("delete %s", d.GetKey()) },
		}
		_, err := typed.AddTypedEventHandler(handler)
		require.NoError(t, err)
		_, err = typed.AddTypedEventHandler(handler, cache.HandlerOptions{}, cache.HandlerOptions{})
		require.Error(t, err)
		defer run(typed)()
		synctest.Wait()
		onNode, err := typed.GetTypedIndexer().ByTypedIndex("node", "n")
		require.NoError(t, err)
		require.Len(t, onNode, 1)
		source.Delete(pod("a", 0))
		synctest.Wait()
		require.Equal(t, []string{"add a", "delete ns/a"}, seen.take())
	})
}

func TestNewInformer_Family(t *testing.T) {
	drop := func(obj any) (any, error) {
		obj.(*v1.Pod).Spec = v1.PodSpec{}
		return obj, nil
	}
	var seen log
	handler, indexers := seen.handler(), cache.Indexers{"node": byNode}
	type constructor = func(cache.ListerWatcher) (cache.Store, cache.Controller)
	for what, makeInformer := range map[string]constructor{
		"plain": func(lw cache.ListerWatcher) (cache.Store, cache.Controller) {
			return cache.NewInformer(lw, &v1.Pod{}, 0, handler)
		},
		"indexer": func(lw cache.ListerWatcher) (cache.Store, cache.Controller) {
			return cache.NewIndexerInformer(lw, &v1.Pod{}, 0, handler, indexers)
		},
		"transforming": func(lw cache.ListerWatcher) (cache.Store, cache.Controller) {
			return cache.NewTransformingInformer(lw, &v1.Pod{}, 0, handler, drop)
		},
		"transforming indexer": func(lw cache.ListerWatcher) (cache.Store, cache.Controller) {
			return cache.NewTransformingIndexerInformer(lw, &v1.Pod{}, 0, handler, indexers, drop)
		},
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				source := newSource(t)
				source.Add(podOnNode("a", 0, "n", ""))
				store, controller := makeInformer(source)
				defer run(controller)()
				require.True(t,
					cache.WaitFor(t.Context(), "the informer", controller.HasSyncedChecker()))
				require.Equal(t, []string{"add a@1 initial=true"}, seen.take())
				obj, exists, err := store.GetByKey("ns/a")
				require.NoError(t, err)
				require.True(t, exists)
				transforms := strings.HasPrefix(what, "transforming")
				require.Equal(t, transforms, obj.(*v1.Pod).Spec.NodeName == "")
				if strings.HasSuffix(what, "indexer") {
					require.Contains(t, store.(cache.Indexer).GetIndexers(), "node")
				}
				synctest.Wait() // the reflector notes it once the list is handed over
				require.Equal(t, "1", controller.LastSyncResourceVersion())
			})
		})
	}
}
