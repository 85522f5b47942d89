// SPDX-License-Identifier: Apache-2.0

package adapt_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"

	"example.com/informerstack/compat/adapt"
	compat "example.com/informerstack/compat/cache"
	"example.com/informerstack/informer"
	"example.com/informerstack/informer/factory"
)

// missedDelete runs an informer through the delete of ns/a while its watch is broken.
func missedDelete(source *fcache.FakeControllerSource, run func(stop <-chan struct{})) {
	source.Add(pod("a", "n1"))
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() { run(stop) })
	synctest.Wait()
	source.DeleteDropWatch(pod("a", "n1"))
	source.ResetWatch()
	time.Sleep(time.Minute)
	close(stop)
	running.Wait()
}

// A library that was compiled with client-go does not recognise the tombstones of compat/cache.
// CoreEventHandler makes them client-go's. (Under informerstack swap there is only one type.)
func TestCoreEventHandler_OnAnInformerOfCompat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keys, adapted []string
		library := func(keys *[]string) cache.ResourceEventHandler {
			return cache.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
				key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj)
				if err != nil {
					key = "no key"
				}
				*keys = append(*keys, key)
			}}
		}
		source := newSource(t)
		i := compat.NewSharedInformer(source, &corev1.Pod{}, 0)
		_, err := i.AddEventHandler(library(&keys))
		require.NoError(t, err)
		r, err := i.AddEventHandler(adapt.CoreEventHandler(library(&adapted)))
		require.NoError(t, err)
		require.Contains(t, r.HasSyncedChecker().Name(), "TestCoreEventHandler",
			"messages name the handler, not the adapter")
		missedDelete(source, i.Run)
		require.Equal(t, []string{"no key"}, keys)
		require.Equal(t, []string{"ns/a"}, adapted)
	})
}

// A handler that recognises the tombstones of compat/cache, on an informer of client-go.
func TestEventHandler_OnAnInformerOfClientGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keys []string
		source := newSource(t)
		i := cache.NewSharedInformer(source, &corev1.Pod{}, 0)
		handler := compat.ResourceEventHandlerFuncs{DeleteFunc: func(obj any) {
			key, err := compat.DeletionHandlingMetaNamespaceKeyFunc(obj)
			require.NoError(t, err)
			keys = append(keys, key)
		}}
		_, err := i.AddEventHandler(adapt.EventHandler(handler))
		require.NoError(t, err)
		missedDelete(source, i.Run)
		require.Equal(t, []string{"ns/a"}, keys)
	})
}

func TestEventHandlers_OfNil(t *testing.T) {
	require.True(t, adapt.CoreEventHandler(nil) == nil)
	require.True(t, adapt.EventHandler(nil) == nil)
}

// In client-go, a handler that is removed during the last OnAdd of the initial list has synced when
// that call returns.
func TestDifference_ARemovedHandlerDoesNotSync(t *testing.T) {
	for impl, create := range impls {
		t.Run("impl="+impl, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				i := create(newSource(t, pod("a", "n1")), &corev1.Pod{}, 0, cache.Indexers{})
				release := make(chan struct{})
				r, err := i.AddEventHandler(
					cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-release }},
				)
				require.NoError(t, err)
				defer run(t, i)()
				synctest.Wait()
				require.True(t, i.HasSynced())
				require.NoError(t, i.RemoveEventHandler(r))
				require.False(t, r.HasSynced())
				close(release)
				synctest.Wait()
				require.Equal(t, impl == "client-go", r.HasSynced())
			})
		})
	}
}

// A stopped informer cannot run again, so a Factory of ours makes another one for the next Start.
// client-go's returns the stopped one for ever, and does not start it.
func TestDifference_InformerForAfterAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t, pod("a", "n1"))
		ours, theirs := factory.New(nil), informers.NewSharedInformerFactory(nil, 0)
		ourInformer := func() informer.SharedIndexInformer {
			return ours.InformerFor(&corev1.Pod{}, func() informer.SharedIndexInformer {
				return informer.NewSharedIndexInformer(adapt.CoreListerWatcher(source),
					&corev1.Pod{}, informer.Options{})
			})
		}
		theirInformer := func() cache.SharedIndexInformer {
			create := func(_ kubernetes.Interface, resync time.Duration) cache.SharedIndexInformer {
				return cache.NewSharedIndexInformer(source, &corev1.Pod{}, resync, cache.Indexers{})
			}
			return theirs.InformerFor(&corev1.Pod{}, create)
		}
		start := func() (stop func()) {
			ctx, cancel := context.WithCancel(quiet())
			ours.Start(ctx)
			theirs.StartWithContext(ctx)
			synctest.Wait()
			return func() {
				cancel()
				time.Sleep(time.Minute)
			}
		}

		first, theirFirst := ourInformer(), theirInformer()
		stop := start()
		require.True(t, first.HasSynced())
		require.True(t, theirFirst.HasSynced())
		require.True(t, first == ourInformer(), "the running informer is shared")
		stop()
		second := ourInformer()
		require.False(t, first == second)
		require.True(t, theirFirst == theirInformer())
		stop = start()
		require.True(t, second.HasSynced())
		require.False(t, second.IsStopped())
		require.True(t, theirInformer().IsStopped())
		stop()
		ours.Shutdown()
		theirs.Shutdown()
	})
}
