// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clientgo "k8s.io/client-go/tools/cache"

	"example.com/informerstack/compat/cache"
)

// ways are the list and watch functions of a server that has one Pod.
type ways struct {
	lists int
	watch func(ctx context.Context) (watch.Interface, error)
}

func (s *ways) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	s.lists++
	return &v1.PodList{
		ListMeta: metav1.ListMeta{ResourceVersion: "7"},
		Items:    []v1.Pod{*pod("a", 7)},
	}, nil
}

func (s *ways) WatchWithContext(
	ctx context.Context,
	_ metav1.ListOptions,
) (watch.Interface, error) {
	return s.watch(ctx)
}

func (s *ways) List(metav1.ListOptions) (runtime.Object, error)   { panic("without context") }
func (s *ways) Watch(metav1.ListOptions) (watch.Interface, error) { panic("without context") }
func (s *ways) IsWatchListSemanticsUnSupported() bool             { return true }

// onBoth runs test with a constructor of each implementation, of what lists and watches s until its
// context is done.
func onBoth(
	t *testing.T,
	test func(t *testing.T, ours bool, run func(ctx context.Context, s *ways)),
) {
	for name, run := range map[string]func(ctx context.Context, s *ways){
		"ours": func(ctx context.Context, s *ways) {
			store := cache.NewStore(cache.MetaNamespaceKeyFunc)
			cache.NewReflector(s, &v1.Pod{}, store, 0).RunWithContext(ctx)
		},
		"client-go": func(ctx context.Context, s *ways) {
			store := clientgo.NewStore(clientgo.MetaNamespaceKeyFunc)
			clientgo.NewReflector(s, &v1.Pod{}, store, 0).RunWithContext(ctx)
		},
	} {
		t.Run("impl="+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, name == "ours", run) })
		})
	}
}

// The context that a watch function gets is done when the watch ends.
func TestDifference_AWatchsContextEndsWithIt(t *testing.T) {
	onBoth(t, func(t *testing.T, ours bool, run func(ctx context.Context, s *ways)) {
		var contexts []context.Context
		s := &ways{watch: func(ctx context.Context) (watch.Interface, error) {
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
	onBoth(t, func(t *testing.T, ours bool, run func(ctx context.Context, s *ways)) {
		release := make(chan struct{})
		s := &ways{watch: func(context.Context) (watch.Interface, error) {
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
	type controller interface{ RunWithContext(context.Context) }
	for name, newController := range map[string]func(s *ways) controller{
		"ours": func(s *ways) controller {
			_, c := cache.NewInformerWithOptions(cache.InformerOptions{
				ListerWatcher: s, ObjectType: &v1.Pod{}, Handler: cache.ResourceEventHandlerFuncs{},
			})
			return c
		},
		"client-go": func(s *ways) controller {
			_, c := clientgo.NewInformerWithOptions(clientgo.InformerOptions{
				ListerWatcher: s, ObjectType: &v1.Pod{},
				Handler: clientgo.ResourceEventHandlerFuncs{},
			})
			return c
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &ways{
				watch: func(context.Context) (watch.Interface, error) {
					return watch.NewFake(), nil
				},
			}
			c := newController(s)
			for range 2 {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				c.RunWithContext(ctx)
				cancel()
			}
			require.Equal(t, map[string]int{"ours": 1, "client-go": 2}[name], s.lists, name)
		})
	}
}

// unversioned lists and watches a Pod that has no resourceVersion.
type unversioned struct{ watch *watch.FakeWatcher }

func (s *unversioned) List(metav1.ListOptions) (runtime.Object, error) {
	return &v1.PodList{
		ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []v1.Pod{*parsePod("ns/a")}}, nil
}

func (s *unversioned) Watch(metav1.ListOptions) (watch.Interface, error) { return s.watch, nil }
func (s *unversioned) IsWatchListSemanticsUnSupported() bool             { return true }

// An update of an object without a resourceVersion may be a change, so a handler without resyncs
// gets it. It gets no resync of the object.
func TestDifference_UpdateWithoutVersionIsAChange(t *testing.T) {
	type informer interface {
		AddEventHandlerWithResyncPeriod(
			cache.ResourceEventHandler, time.Duration,
		) (cache.ResourceEventHandlerRegistration, error)
		Run(stopCh <-chan struct{})
	}
	for name, c := range map[string]struct {
		newInformer func(s *unversioned) informer
		want        []string
	}{
		"ours": {func(s *unversioned) informer {
			return cache.NewSharedIndexInformer(s, &v1.Pod{}, time.Minute, nil)
		}, []string{"n1"}},
		"client-go": {func(s *unversioned) informer {
			return theirInformer{clientgo.NewSharedIndexInformer(s, &v1.Pod{}, time.Minute, nil)}
		}, nil},
	} {
		t.Run("impl="+name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &unversioned{watch.NewFake()}
				i := c.newInformer(s)
				var updates []string
				_, err := i.AddEventHandlerWithResyncPeriod(cache.ResourceEventHandlerFuncs{
					UpdateFunc: func(_, obj any) {
						updates = append(updates, obj.(*v1.Pod).Spec.NodeName)
					},
				}, 0)
				require.NoError(t, err)
				defer run(i)()
				time.Sleep(90 * time.Second) // one resync check
				s.watch.Modify(parsePod("ns/a node=n1"))
				time.Sleep(90 * time.Second)
				synctest.Wait()
				require.Equal(t, c.want, updates)
			})
		})
	}
}

// theirInformer is client-go's informer with our type of registrations.
type theirInformer struct{ clientgo.SharedIndexInformer }

func (i theirInformer) AddEventHandlerWithResyncPeriod(
	handler cache.ResourceEventHandler, resyncPeriod time.Duration,
) (cache.ResourceEventHandlerRegistration, error) {
	_, err := i.SharedIndexInformer.AddEventHandlerWithResyncPeriod(handler, resyncPeriod)
	return nil, err
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
