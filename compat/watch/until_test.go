// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/compat/cache"
	framework "example.com/informerstack/compat/cache/testing"
	compat "example.com/informerstack/compat/watch"
)

// newSource is a server with the pod ns/a.
func newSource(t *testing.T) *framework.FakeControllerSource {
	source := framework.NewFakeControllerSource()
	t.Cleanup(source.Shutdown)
	source.Add(pod(0))
	return source
}

func isType(want watch.EventType) compat.ConditionFunc {
	return func(event watch.Event) (bool, error) { return event.Type == want, nil }
}

func TestUntilWithoutRetry(t *testing.T) {
	events := func() watch.Interface {
		w := watch.NewFakeWithChanSize(3, false)
		w.Add(pod(1))
		w.Modify(pod(2))
		w.Delete(pod(3))
		return w
	}
	last, err := compat.UntilWithoutRetry(t.Context(), events())
	require.NoError(t, err)
	require.Nil(t, last, "without a condition there is nothing to read")

	last, err = compat.UntilWithoutRetry(t.Context(), events(), isType(watch.Modified),
		isType(watch.Modified), isType(watch.Deleted))
	require.NoError(t, err)
	require.Equal(t, pod(3), last.Object, "one event meets two conditions")

	oops := errors.New("oops")
	last, err = compat.UntilWithoutRetry(t.Context(), events(), isType(watch.Added),
		func(watch.Event) (bool, error) { return true, oops })
	require.ErrorIs(t, err, oops)
	require.Equal(t, watch.Added, last.Type)

	w := watch.NewFakeWithChanSize(1, false)
	w.Add(pod(1))
	w.Stop()
	last, err = compat.UntilWithoutRetry(t.Context(), w, isType(watch.Deleted))
	require.ErrorIs(t, err, compat.ErrWatchClosed)
	require.Equal(t, watch.Added, last.Type)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = compat.UntilWithoutRetry(ctx, watch.NewFake(), isType(watch.Deleted))
	require.True(t, wait.Interrupted(err))
}

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		source.Modify(pod(0))
		last, err := compat.Until(t.Context(), "1", source, isType(watch.Modified))
		require.NoError(t, err)
		require.Equal(t, pod(2), last.Object)
		_, err = compat.Until(t.Context(), "", source)
		require.Error(t, err)
	})
}

// An informer as a watch: the objects of the first list are Added, and changes during a broken
// watch are delivered later.
func TestUntilWithSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		time.AfterFunc(time.Second, func() {
			source.DeleteDropWatch(pod(0))
			source.ResetWatch()
		})
		last, err := compat.UntilWithSync(t.Context(), source, &v1.Pod{}, nil, isType(watch.Added),
			isType(watch.Deleted))
		require.NoError(t, err)
		require.Equal(t, pod(1), last.Object, "the last state that was seen")
	})
}

func TestUntilWithSync_Precondition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		exists := func(store cache.Store) (bool, error) {
			_, exists, err := store.GetByKey("ns/a")
			return exists, err
		}
		last, err := compat.UntilWithSync(t.Context(), source, &v1.Pod{}, exists,
			isType(watch.Deleted))
		require.NoError(t, err)
		require.Nil(t, last)

		oops := errors.New("oops")
		_, err = compat.UntilWithSync(t.Context(), source, &v1.Pod{},
			func(cache.Store) (bool, error) { return false, oops })
		require.ErrorIs(t, err, oops)

		source.ListError = oops
		ctx, cancel := compat.ContextWithOptionalTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = compat.UntilWithSync(ctx, source, &v1.Pod{}, exists)
		require.ErrorIs(t, err, context.DeadlineExceeded)
	})
}

// A reader that stops ends the informer, even with unread events.
func TestNewIndexerInformerWatcher_Stop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		indexer, controller, w, ended := compat.NewIndexerInformerWatcher(source, &v1.Pod{})
		synctest.Wait()
		require.True(t, controller.HasSynced())
		require.Equal(t, []string{"ns/a"}, indexer.ListKeys())
		source.Modify(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}})
		require.Equal(t, watch.Added, (<-w.ResultChan()).Type)
		require.Equal(t, watch.Modified, (<-w.ResultChan()).Type)
		source.Delete(pod(0))
		w.Stop()
		<-ended
	})
}

func TestContextWithOptionalTimeout(t *testing.T) {
	for _, none := range []time.Duration{0, -1} {
		ctx, cancel := compat.ContextWithOptionalTimeout(t.Context(), none)
		_, limited := ctx.Deadline()
		require.False(t, limited)
		require.NoError(t, ctx.Err())
		cancel()
	}
	ctx, cancel := compat.ContextWithOptionalTimeout(t.Context(), time.Hour)
	defer cancel()
	_, limited := ctx.Deadline()
	require.True(t, limited)
}

// Any number of events wait for their reader, in order.
func TestNewIndexerInformerWatcher_KeepsTheOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		_, _, w, ended := compat.NewIndexerInformerWatcher(source, &v1.Pod{})
		const last = 1000
		for version := 2; version <= last; version++ {
			if version%50 == 2 { // the source holds no more than 100 events for the informer
				synctest.Wait()
			}
			source.Modify(pod(0))
		}
		require.Equal(t, watch.Event{Type: watch.Added, Object: pod(1)}, <-w.ResultChan())
		for version := 2; version <= last; version++ {
			require.Equal(t, watch.Event{Type: watch.Modified, Object: pod(version)},
				<-w.ResultChan())
		}
		w.Stop()
		<-ended
	})
}

// A tombstone becomes an event with the last known state. A tombstone without a state is left out;
// client-go panics.
func TestDifference_TombstoneWithoutStateIsNoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := newSource(t)
		indexer, _, w, ended := compat.NewIndexerInformerWatcher(source, &v1.Pod{})
		require.Equal(t, watch.Event{Type: watch.Added, Object: pod(1)}, <-w.ResultChan())
		// a key in place of an object
		require.NoError(t, indexer.Add(cache.ExplicitKey("ns/ghost")))
		source.DeleteDropWatch(pod(0))
		source.ResetWatch()
		time.Sleep(time.Minute)
		require.Empty(t, indexer.ListKeys())
		require.Equal(t, watch.Event{Type: watch.Deleted, Object: pod(1)}, <-w.ResultChan())
		synctest.Wait()
		select {
		case event := <-w.ResultChan():
			require.Fail(t, "another event", event)
		default:
		}
		w.Stop()
		<-ended
	})
}
