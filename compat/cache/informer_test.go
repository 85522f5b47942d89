// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"example.com/informerstack/compat/cache"
)

// The informer of NewInformer calls its handler in the goroutine that fills the store, after the
// store has changed. It resyncs, and runs once.
func TestNewInformer_HandlerAndStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, "a")
		var seen log
		var store cache.Store
		funcs := seen.handler().(cache.ResourceEventHandlerDetailedFuncs)
		add := funcs.AddFunc
		funcs.AddFunc = func(obj any, initial bool) {
			add(obj, initial)
			seen.note("the store has %d", len(store.List()))
			time.Sleep(time.Second)
		}
		store, controller := cache.NewInformer(source, &v1.Pod{}, time.Minute, funcs)
		require.False(t, controller.HasSynced())
		require.Empty(t, controller.LastSyncResourceVersion())
		stop := run(controller)
		defer stop()
		require.True(t, cache.WaitFor(t.Context(), "", controller.HasSyncedChecker()))
		source.Add(pod("b", 0))
		time.Sleep(2 * time.Second)
		source.Add(pod("c", 0))
		time.Sleep(time.Minute)
		source.Delete(pod("a", 0))
		synctest.Wait()
		lines := seen.take()
		require.Equal(t, []string{
			"add a@1 initial=true", "the store has 1", "add b@2 initial=false", "the store has 2",
			"add c@3 initial=false", "the store has 3",
		}, lines[:6])
		require.ElementsMatch(t, []string{"update a@1", "update b@2", "update c@3"}, lines[6:9])
		require.Equal(t, []string{"delete a@4"}, lines[9:])
		require.Equal(t, "4", controller.LastSyncResourceVersion())
		require.Equal(t, "4", store.LastStoreSyncResourceVersion())
		controller.RunWithContext(t.Context()) // the second one returns
	})
}

// An informer without a handler fills its store.
func TestNewInformer_WithoutHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, "a")
		store, controller := cache.NewInformer(source, &v1.Pod{}, 0, nil)
		defer run(controller)()
		synctest.Wait()
		require.Len(t, store.List(), 1)
	})
}

// kubernetes/kubernetes#93646: a panic in the process function leaves Run, although the reflector
// still runs. So the process ends.
func TestRegress93646_PanicLeavesRun(t *testing.T) {
	source := newSource(t, "a")
	_, controller := cache.NewInformer(source, &v1.Pod{}, 0, cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { panic("from a handler") },
	})
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	require.PanicsWithValue(t, "from a handler", func() { controller.RunWithContext(ctx) })
}

// kubernetes/kubernetes#117870: setters that race with Run take effect or fail.
func TestRegress117870_SettersRaceRun(t *testing.T) {
	source := newSource(t)
	for range 50 {
		informer := cache.NewSharedIndexInformer(source, &v1.Pod{}, 0, nil)
		ctx, cancel := context.WithCancel(context.Background())
		var all sync.WaitGroup
		all.Go(func() { informer.RunWithContext(ctx) })
		all.Go(func() {
			_ = informer.SetTransform(func(obj any) (any, error) { return obj, nil })
		})
		all.Go(func() {
			_ = informer.SetWatchErrorHandlerWithContext(cache.DefaultWatchErrorHandler)
		})
		<-informer.HasSyncedChecker().Done()
		require.EqualError(t, informer.SetTransform(nil), "informer has already started")
		require.EqualError(t, informer.SetWatchErrorHandler(nil), "informer has already started")
		cancel()
		all.Wait()
	}
}
