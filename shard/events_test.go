// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// The bookmark after the new shards is at the version that the inner watch has reached, and an
// error that only a list can mend reaches the reflector.
func TestEvents_EndOfPresent(t *testing.T) {
	p := newPresenting(t, nil)
	require.Len(t, p.cache.ahead, 1)
	p.meanwhile.version = 30
	assert.True(t, p.endPresent())
	assert.Equal(t, []string{"BOOKMARK  30"}, p.sent())
	assert.Empty(t, p.cache.ahead)

	p.fail(incomparable("text"))
	e := <-p.events
	assert.Equal(t, watch.Error, e.Type)
	assert.True(t, apierrors.IsResourceExpired(apierrors.FromObject(e.Object)))

	p = newPresenting(t, nil)
	p.meanwhile.version, p.events = 30, nil
	p.Stop()
	assert.False(t, p.endPresent())
	assert.Len(t, p.cache.ahead, 1, "the reflector has not reached it")
}

// streamed is a streaming list of shard 1 that has begun.
func streamed(t *testing.T, shards ...Shard) (
	c *informerCache, w *selectiveWatch, inner *watch.RaceFreeFakeWatcher,
) {
	c = newInformerCache(ByUID, 8, func() {})
	c.assign(newShardSet(8, shards...))
	w = listWatch{nil, c}.prepare(t.Context(), &metav1.ListOptions{SendInitialEvents: new(true)})
	inner = watch.NewRaceFreeFake()
	w.inner = inner
	t.Cleanup(w.Stop)
	return c, w, inner
}

func endOfInitial(version string) *metav1.PartialObjectMetadata {
	end := &metav1.PartialObjectMetadata{}
	end.ResourceVersion = version
	end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	return end
}

// A streaming list is complete with the server's bookmark, and not before. It does not end because
// shards move meanwhile; the watch does so afterwards.
func TestEvents_AStreamIsNotCutShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w, inner := streamed(t, 1)
		events := w.ResultChan()
		synctest.Wait()
		assert.True(t, c.held.empty())
		inner.Add(of(1, "ns/a", "5"))
		inner.Add(of(3, "ns/other", "5"))
		assert.Equal(t, watch.Added, (<-events).Type)
		c.assign(newShardSet(8, 1, 2))
		time.Sleep(time.Minute)
		assert.False(t, w.Reselects())
		assert.True(t, c.held.empty())
		inner.Action(watch.Bookmark, endOfInitial("7"))
		assert.Equal(t, watch.Bookmark, (<-events).Type)
		assert.Equal(t, newShardSet(8, 1), c.held)
		assert.True(t, c.stored().empty())
		c.written(of(1, "ns/a", "5"))
		assert.Equal(t, newShardSet(8, 1), c.stored())
		assert.True(t, c.filters(), "the server has sent all")
		_, open := <-events
		assert.False(t, open)
		assert.True(t, w.Reselects())
	})
}

// What a streaming list brings is listed if it is wanted and was not deleted again.
func TestListing_Judge(t *testing.T) {
	c, w, _ := streamed(t, 1)
	a, moved := of(1, "ns/a", "5"), of(3, "ns/a", "6")
	judge := func(e watch.EventType, i item) watch.EventType { return w.listing.judge(e, i) }
	first, err := c.item(a)
	require.NoError(t, err)
	second, err := c.item(moved)
	require.NoError(t, err)
	assert.Empty(t, judge(watch.Added, second))
	assert.Empty(t, judge(watch.Deleted, first))
	assert.Equal(t, watch.Added, judge(watch.Added, first))
	assert.Len(t, w.listing.listed, 1)
	assert.Equal(t, watch.Deleted, judge(watch.Modified, second), "another's now")
	assert.Empty(t, w.listing.listed)
	assert.Equal(t, watch.Modified, judge(watch.Modified, first))
	assert.Equal(t, watch.Deleted, judge(watch.Deleted, first))
	assert.Empty(t, w.listing.listed)
}

// A watch is not quiet while the reflector has not taken an event.
func TestEvents_Quiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, w, inner := streamed(t, 1)
		quiet := func(want bool) {
			t.Helper()
			synctest.Wait()
			_, _, ok := w.Quiet()
			assert.Equal(t, want, ok)
		}
		events := w.ResultChan()
		quiet(true)
		inner.Add(of(1, "ns/a", "5"))
		quiet(false)
		<-events
		quiet(true)
		assert.Empty(t, c.keys.held, "the list is not complete")
	})
}
