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

// Fields that are set after the constructor count, until the reflector first runs.
func TestReflector_FieldsCountUntilItRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s server
		resyncs, asked := 0, 0
		store := &cache.FakeCustomStore{ResyncFunc: func() error { resyncs++; return nil }}
		r := cache.NewNamedReflector("pods", s.lw(), &v1.Pod{}, store, time.Second)
		require.Equal(t, "pods", r.Name())
		require.Equal(t, "*v1.Pod", r.TypeDescription())
		require.Empty(t, r.LastSyncResourceVersion())
		r.WatchListPageSize = 42
		r.ShouldResync = func() bool { asked++; return asked == 2 }

		stopCh := make(chan struct{})
		time.AfterFunc(3500*time.Millisecond, func() { close(stopCh) })
		r.Run(stopCh)
		require.Len(t, s.lists, 1)
		require.EqualValues(t, 42, s.lists[0].Limit)
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
		lw, refuse := new(server).lw(), errors.New("full")
		store := &cache.FakeCustomStore{ResyncFunc: func() error { return refuse }}
		r := cache.NewReflector(lw, &v1.Pod{}, store, time.Second)
		require.NoError(t, r.ListAndWatchWithContext(t.Context()))

		store.ReplaceFunc = func([]any, string) error { return refuse }
		require.ErrorIs(t, cache.NewReflector(lw, &v1.Pod{}, store, 0).ListAndWatch(nil), refuse)

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r = cache.NewReflector(lw, &v1.Pod{}, &cache.FakeCustomStore{}, 0)
		require.NoError(t, r.ListAndWatchWithContext(ctx))
	})
}

// A function with a context and one without serve each other's calls; without one of its own, a
// call gets the other.
func TestListWatch_OldFunctionsServeNewCalls(t *testing.T) {
	var calls []string
	list := func(kind string, options metav1.ListOptions) (runtime.Object, error) {
		require.Zero(t, options.Limit)
		calls = append(calls, kind)
		return &v1.PodList{}, nil
	}
	watches := func(kind string) (watch.Interface, error) {
		calls = append(calls, kind)
		return nil, nil
	}
	setOld := func(lw *cache.ListWatch) {
		lw.ListFunc = func(o metav1.ListOptions) (runtime.Object, error) { return list("old", o) }
		lw.WatchFunc = func(metav1.ListOptions) (watch.Interface, error) { return watches("old") }
	}
	setNew := func(lw *cache.ListWatch) {
		lw.ListWithContextFunc = func(
			_ context.Context, o metav1.ListOptions,
		) (runtime.Object, error) {
			return list("new", o)
		}
		lw.WatchFuncWithContext = func(
			context.Context, metav1.ListOptions,
		) (watch.Interface, error) {
			return watches("new")
		}
	}
	paged := metav1.ListOptions{Limit: 500}
	for _, set := range [][]func(*cache.ListWatch){{setOld}, {setNew}, {setOld, setNew}} {
		lw := &cache.ListWatch{DisableChunking: true}
		for _, set := range set {
			set(lw)
		}
		_, err := lw.List(paged)
		require.NoError(t, err)
		_, err = lw.ListWithContext(t.Context(), paged)
		require.NoError(t, err)
		_, _ = lw.Watch(paged)
		_, _ = lw.WatchWithContext(t.Context(), paged)
	}
	require.Equal(t, []string{
		"old", "old", "old", "old", "new", "new", "new", "new", "old", "new", "old", "new",
	}, calls)
}

// DisableChunking is without effect in client-go.
func TestDifference_DisableChunking(t *testing.T) {
	var limits []int64
	list := func(options metav1.ListOptions) (runtime.Object, error) {
		limits = append(limits, options.Limit)
		return &v1.PodList{}, nil
	}
	paged := metav1.ListOptions{Limit: 500}
	_, err := (&cache.ListWatch{DisableChunking: true, ListFunc: list}).List(paged)
	require.NoError(t, err)
	//lint:ignore SA1019 the deprecated names have the same effect
	_, err = (&clientgo.ListWatch{DisableChunking: true, ListFunc: list}).List(paged)
	require.NoError(t, err)
	require.Equal(t, []int64{0, 500}, limits)
}

// plain is a ListerWatcher that knows no contexts.
type plain struct{ cache.ListerWatcher }

// refusing is plain, and knows that its server has no streaming lists.
type refusing struct {
	plain
	refuser
}

func TestToListerWatcherWithContext(t *testing.T) {
	var s server
	lw := &cache.ListWatch{ListFunc: s.lw().List, WatchFunc: s.lw().Watch}
	require.Same(t, lw, cache.ToListerWatcherWithContext(lw))
	require.Nil(t, cache.ToListerWatcherWithContext(nil))

	wrapped := cache.ToListerWatcherWithContext(plain{lw})
	_, err := wrapped.ListWithContext(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	_, err = wrapped.WatchWithContext(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, s.lists, 1)
	for _, c := range []struct {
		lw      cache.ListerWatcher
		refuses bool
	}{
		{plain{lw}, false}, {refusing{plain: plain{lw}}, true},
		{cache.ToListWatcherWithWatchListSemantics(lw, refuser{}), true},
		{cache.ToListWatcherWithWatchListSemantics(lw, nil), false},
	} {
		got := cache.ToListerWatcherWithContext(c.lw).(interface {
			IsWatchListSemanticsUnSupported() bool
		}).IsWatchListSemanticsUnSupported()
		require.Equal(t, c.refuses, got, "%T", c.lw)
	}
}
