// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	clientgo "k8s.io/client-go/tools/cache"

	"example.com/informerstack/compat/cache"
)

// onBoth runs test with a reflector of each implementation, which runs until its context is done.
func onBoth(
	t *testing.T, test func(t *testing.T, ours bool, run func(ctx context.Context, s *server)),
) {
	for name, run := range map[string]func(ctx context.Context, s *server){
		"ours": func(ctx context.Context, s *server) {
			store := cache.NewStore(cache.MetaNamespaceKeyFunc)
			cache.NewReflector(s.lw(), &v1.Pod{}, store, 0).RunWithContext(ctx)
		},
		"client-go": func(ctx context.Context, s *server) {
			store := clientgo.NewStore(clientgo.MetaNamespaceKeyFunc)
			clientgo.NewReflector(s.lw(), &v1.Pod{}, store, 0).RunWithContext(ctx)
		},
	} {
		t.Run("impl="+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, name == "ours", run) })
		})
	}
}

// The context that a watch function gets is done when the watch ends.
func TestDifference_AWatchsContextEndsWithIt(t *testing.T) {
	onBoth(t, func(t *testing.T, ours bool, run func(ctx context.Context, s *server)) {
		var contexts []context.Context
		s := &server{watch: func(ctx context.Context) (watch.Interface, error) {
			contexts = append(contexts, ctx)
			w := watch.NewFake()
			if len(contexts) == 1 {
				time.AfterFunc(2*time.Second, w.Stop)
			}
			return w, nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		go run(ctx, s)
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, ours, contexts[0].Err() != nil, "the first, which has ended")
		require.NoError(t, contexts[1].Err(), "the one that is open")
		cancel()
		synctest.Wait()
	})
}

// A watch function that does not notice the end of its context does not delay the stop.
func TestDifference_ABlockedWatchFunctionIsNotWaitedFor(t *testing.T) {
	onBoth(t, func(t *testing.T, ours bool, run func(ctx context.Context, s *server)) {
		release := make(chan struct{})
		s := &server{watch: func(context.Context) (watch.Interface, error) {
			<-release
			return watch.NewFake(), nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		ended := false
		go func() {
			run(ctx, s)
			ended = true
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		require.Equal(t, ours, ended)
		close(release)
		synctest.Wait()
		require.True(t, ended)
	})
}

// A controller runs once: a second Run reports an error, and ours also returns.
func TestDifference_AControllerRunsOnce(t *testing.T) {
	for side, wantLists := range []int{1, 2} {
		synctest.Test(t, func(t *testing.T) {
			var s server
			i := subjects["simple"][side](s.lw(), cache.ResourceEventHandlerFuncs{})
			for range 2 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				i.run(ctx)
				cancel()
			}
			require.Len(t, s.lists, wantLists)
		})
	}
}

// An update of an object without a resourceVersion may be a change, so a handler without resyncs
// gets it. It gets no resync of the object.
func TestDifference_UpdateWithoutVersionIsAChange(t *testing.T) {
	for side, want := range [][]string{{"n1"}, nil} {
		synctest.Test(t, func(t *testing.T) {
			var open *watch.FakeWatcher
			s := &server{pods: []v1.Pod{*parsePod("ns/a")}}
			s.watch = func(context.Context) (watch.Interface, error) {
				open = watch.NewFake()
				return open, nil
			}
			var updates []string
			i := subjects["shared"][side](s.lw(), cache.ResourceEventHandlerFuncs{
				UpdateFunc: func(_, obj any) {
					updates = append(updates, obj.(*v1.Pod).Spec.NodeName)
				},
			})
			defer i.start(t)()
			time.Sleep(resyncPeriod * 3 / 2) // one resync check
			synctest.Wait()
			open.Modify(parsePod("ns/a node=n1"))
			time.Sleep(resyncPeriod * 3 / 2)
			synctest.Wait()
			require.Equal(t, want, updates)
		})
	}
}

// The Indexers are read when the store is made.
func TestDifference_IndexersAreCopied(t *testing.T) {
	indexers := cache.Indexers{}
	ours := cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers)
	theirIndexers := clientgo.Indexers{}
	theirs := clientgo.NewIndexer(clientgo.MetaNamespaceKeyFunc, theirIndexers)
	indexers["later"] = cache.MetaNamespaceIndexFunc
	theirIndexers["later"] = clientgo.MetaNamespaceIndexFunc
	_, err := ours.ByIndex("later", "ns")
	require.Error(t, err)
	_, err = theirs.ByIndex("later", "ns")
	require.NoError(t, err)
}

// A program may use the value although there is an error.
func TestMetaNamespaceIndexFunc_BesideAnError(t *testing.T) {
	for _, obj := range []any{
		nil, 7, "text", cache.DeletedFinalStateUnknown{Key: "ns/a"}, pod("a", 1),
	} {
		got, err := cache.MetaNamespaceIndexFunc(obj)
		want, wantErr := clientgo.MetaNamespaceIndexFunc(obj)
		require.Equal(t, want, got, "%v", obj)
		require.Equal(t, wantErr == nil, err == nil, "%v", obj)
	}
}
