// SPDX-License-Identifier: Apache-2.0

package watch_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/compat/cache"
	framework "example.com/informerstack/compat/cache/testing"
	compat "example.com/informerstack/compat/watch"
)

// A tombstone becomes an event with the last known state. A tombstone without a state is left out;
// client-go panics.
func TestDifference_TombstoneWithoutStateIsNoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := framework.NewFakeControllerSource()
		defer source.Shutdown()
		source.Add(pod(0))
		indexer, _, w, ended := compat.NewIndexerInformerWatcher(source, &v1.Pod{})
		require.Equal(t, watch.Event{Type: watch.Added, Object: pod(1)}, <-w.ResultChan())
		// a key that stands for an object
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
