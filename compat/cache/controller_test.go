// SPDX-License-Identifier: Apache-2.0

package cache_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"example.com/informerstack/compat/cache"
	"example.com/informerstack/internal/tools/narrate"
)

// A controller made by hand on a DeltaFIFO, as before there were shared informers.
func TestStory_ControllerOnDeltaFIFO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, "a")
		store := cache.NewStore(cache.DeletionHandlingMetaNamespaceKeyFunc)
		fifo := cache.NewDeltaFIFOWithOptions(
			cache.DeltaFIFOOptions{KnownObjects: store, EmitDeltaTypeReplaced: true},
		)
		seen := log{narrate: narrate.New(t)}
		controller := cache.New(&cache.Config{
			Queue:         fifo,
			ListerWatcher: source,
			ObjectType:    &v1.Pod{},
			Process: func(obj any, _ bool) error {
				for _, delta := range obj.(cache.Deltas) {
					seen.note("%s %s", delta.Type, name(delta.Object))
					if delta.Type == cache.Deleted {
						require.NoError(t, store.Delete(delta.Object))
					} else {
						require.NoError(t, store.Update(delta.Object))
					}
				}
				return nil
			},
		})
		defer run(controller)()
		synctest.Wait()
		require.True(t, controller.HasSynced())
		source.Modify(pod("a", 0))
		synctest.Wait()
		source.Delete(pod("a", 0))
		synctest.Wait()
		require.Equal(t, []string{"Replaced a@1", "Updated a@2", "Deleted a@3"}, seen.take())
		require.Empty(t, store.List())
	})
}

// The handler without a context wins, as the comment in client-go's Config has it.
func TestConfig_WatchErrorHandlers(t *testing.T) {
	var seen log
	old := func(*cache.Reflector, error) { seen.note("old") }
	young := func(context.Context, *cache.Reflector, error) { seen.note("young") }
	for _, config := range []cache.Config{
		{WatchErrorHandler: old},
		{WatchErrorHandlerWithContext: young},
		{WatchErrorHandler: old, WatchErrorHandlerWithContext: young},
	} {
		synctest.Test(t, func(t *testing.T) {
			config.Queue = cache.NewRealFIFO(cache.MetaNamespaceKeyFunc,
				cache.NewStore(cache.MetaNamespaceKeyFunc), nil)
			config.ListerWatcher = unlistable(t)
			config.Process = func(any, bool) error { return nil }
			defer run(cache.New(&config))()
			synctest.Wait()
		})
	}
	require.Equal(t, []string{"old", "young", "old"}, seen.take())
}

func TestNewDeltaFIFO_ListedIsSync(t *testing.T) {
	fifo := cache.NewDeltaFIFO(cache.MetaNamespaceKeyFunc, nil)
	require.NoError(t, fifo.Replace([]any{pod("a", 1)}, "1"))
	got, err := fifo.Pop(func(any, bool) error { return nil })
	require.NoError(t, err)
	require.Equal(t, cache.Deltas{{Type: cache.Sync, Object: pod("a", 1)}}, got)
	require.Panics(t, func() { cache.NewRealFIFO(cache.MetaNamespaceKeyFunc, nil, nil) })
}
