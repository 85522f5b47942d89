// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"errors"
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

// empty is an empty collection that notes its LISTs.
func empty(lists *[]metav1.ListOptions) *cache.ListWatch {
	return &cache.ListWatch{
		ListFunc: func(options metav1.ListOptions) (runtime.Object, error) {
			*lists = append(*lists, options)
			return &v1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}, nil
		},
		WatchFunc: func(metav1.ListOptions) (watch.Interface, error) {
			return watch.NewFake(), nil
		},
	}
}

// Fields that are set after the constructor count, until the reflector first runs.
func TestReflector_FieldsCountUntilItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lists []metav1.ListOptions
		resyncs, asked := 0, 0
		store := &cache.FakeCustomStore{ResyncFunc: func() error { resyncs++; return nil }}
		lw := cache.ToListWatcherWithWatchListSemantics(empty(&lists), refuser{})
		r := cache.NewNamedReflector("pods", lw, &v1.Pod{}, store, time.Second)
		require.Equal(t, "pods", r.Name())
		require.Equal(t, "*v1.Pod", r.TypeDescription())
		require.Empty(t, r.LastSyncResourceVersion())
		r.WatchListPageSize = 42
		r.ShouldResync = func() bool { asked++; return asked == 2 }

		stopCh := make(chan struct{})
		time.AfterFunc(3500*time.Millisecond, func() { close(stopCh) })
		r.Run(stopCh)
		require.Len(t, lists, 1)
		require.EqualValues(t, 42, lists[0].Limit)
		require.Equal(t, 3, asked)
		require.Equal(t, 1, resyncs)
		require.Equal(t, "7", r.LastSyncResourceVersion())
	})
}

func TestNewNamespaceKeyedIndexerAndReflector(t *testing.T) {
	indexer, r := cache.NewNamespaceKeyedIndexerAndReflector(&cache.ListWatch{}, nil, 0)
	require.NoError(t, indexer.Add(pod("a", 1)))
	inNamespace, err := indexer.ByIndex(cache.NamespaceIndex, "ns")
	require.NoError(t, err)
	require.Len(t, inNamespace, 1)
	require.Equal(t, "<unspecified>", r.TypeDescription())
	require.NotEmpty(t, r.Name())
}

// Where the program is too far away, the name is the next best.
func TestReflector_NameOfDeepCalls(t *testing.T) {
	var deep func(calls int) *cache.Reflector
	deep = func(calls int) *cache.Reflector {
		if calls == 0 {
			return cache.NewReflector(&cache.ListWatch{}, &v1.Pod{}, nil, 0)
		}
		return deep(calls - 1)
	}
	require.Equal(t, "*v1.Pod", deep(20).Name())
}

// A resync that fails ends the round; what fails before is an error of it.
func TestReflector_ListAndWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var lists []metav1.ListOptions
		refuse := errors.New("full")
		store := &cache.FakeCustomStore{ResyncFunc: func() error { return refuse }}
		lw := cache.ToListWatcherWithWatchListSemantics(empty(&lists), refuser{})
		require.NoError(t, cache.NewReflector(
			lw, &v1.Pod{}, store, time.Second,
		).ListAndWatchWithContext(t.Context()))

		store.ReplaceFunc = func([]any, string) error { return refuse }
		require.ErrorIs(t, cache.NewReflector(lw, &v1.Pod{}, store, 0).ListAndWatch(nil), refuse)

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		require.NoError(t, cache.NewReflector(
			lw, &v1.Pod{}, &cache.FakeCustomStore{}, 0,
		).ListAndWatchWithContext(ctx))
	})
}

func TestListWatch_OldFunctionsServeNewCalls(t *testing.T) {
	var calls []string
	list := &v1.PodList{}
	lists := func(kind string) func() (runtime.Object, error) {
		return func() (runtime.Object, error) { calls = append(calls, kind); return list, nil }
	}
	oldList := func(options metav1.ListOptions) (runtime.Object, error) {
		require.Zero(t, options.Limit)
		return lists("old")()
	}
	newList := func(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
		require.Zero(t, options.Limit)
		return lists("new")()
	}
	paged := metav1.ListOptions{Limit: 500}
	for _, lw := range []*cache.ListWatch{
		{ListFunc: oldList}, {ListWithContextFunc: newList},
		{ListFunc: oldList, ListWithContextFunc: newList},
	} {
		lw.DisableChunking = true
		_, err := lw.List(paged)
		require.NoError(t, err)
		_, err = lw.ListWithContext(t.Context(), paged)
		require.NoError(t, err)
	}
	require.Equal(t, []string{"old", "old", "new", "new", "old", "new"}, calls)

	calls = nil
	watches := func(kind string) (watch.Interface, error) {
		calls = append(calls, kind)
		return nil, nil
	}
	oldWatch := func(metav1.ListOptions) (watch.Interface, error) { return watches("old") }
	newWatch := func(context.Context, metav1.ListOptions) (watch.Interface, error) {
		return watches("new")
	}
	for _, lw := range []*cache.ListWatch{
		{WatchFunc: oldWatch}, {WatchFuncWithContext: newWatch},
		{WatchFunc: oldWatch, WatchFuncWithContext: newWatch},
	} {
		_, _ = lw.Watch(paged)
		_, _ = lw.WatchWithContext(t.Context(), paged)
	}
	require.Equal(t, []string{"old", "old", "new", "new", "old", "new"}, calls)
}

// DisableChunking is without effect in client-go.
func TestDifference_DisableChunking(t *testing.T) {
	limit := func(
		request func(lists func(metav1.ListOptions) (runtime.Object, error)) error,
	) (limit int64) {
		require.NoError(t, request(func(options metav1.ListOptions) (runtime.Object, error) {
			limit = options.Limit
			return &v1.PodList{}, nil
		}))
		return limit
	}
	paged := metav1.ListOptions{Limit: 500}
	require.Zero(t, limit(func(lists func(metav1.ListOptions) (runtime.Object, error)) error {
		_, err := (&cache.ListWatch{DisableChunking: true, ListFunc: lists}).List(paged)
		return err
	}))
	require.Equal(t, paged.Limit, limit(func(
		lists func(metav1.ListOptions) (runtime.Object, error),
	) error {
		//lint:ignore SA1019 the deprecated names have the same effect
		_, err := (&clientgo.ListWatch{DisableChunking: true, ListFunc: lists}).List(paged)
		return err
	}))
}

// plain is a ListerWatcher that knows no contexts.
type plain struct{ lw *cache.ListWatch }

func (p plain) List(options metav1.ListOptions) (runtime.Object, error) {
	return p.lw.List(options)
}
func (p plain) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return p.lw.Watch(options)
}

// refusing is plain, and knows that its server has no streaming lists.
type refusing struct {
	plain
	refuser
}

func TestToListerWatcherWithContext(t *testing.T) {
	var lists []metav1.ListOptions
	lw := empty(&lists)
	require.Same(t, lw, cache.ToListerWatcherWithContext(lw))
	require.Nil(t, cache.ToListerWatcherWithContext(nil))

	wrapped := cache.ToListerWatcherWithContext(plain{lw})
	_, err := wrapped.ListWithContext(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	_, err = wrapped.WatchWithContext(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, lists, 1)
	refuses := func(lw cache.ListerWatcher) bool {
		return cache.ToListerWatcherWithContext(
			lw,
		).(interface{ IsWatchListSemanticsUnSupported() bool }).IsWatchListSemanticsUnSupported()
	}
	require.False(t, refuses(plain{lw}))
	require.True(t, refuses(refusing{plain: plain{lw}}))
	require.True(t, refuses(cache.ToListWatcherWithWatchListSemantics(lw, refuser{})))
	require.False(t, refuses(cache.ToListWatcherWithWatchListSemantics(lw, nil)))
}
