// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// The bookmark after the new shards is at the version that the inner watch has reached, and the
// reflector gets an error after which only a list helps.
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
		quietLogs()
		c, w, inner := streamed(t, 1)
		events := w.ResultChan()
		synctest.Wait()
		assert.True(t, c.held.empty())
		inner.Add(of(1, "ns/a", "5"))
		inner.Add(of(3, "ns/other", "5"))
		assert.Equal(t, watch.Added, (<-events).Type)
		plain := endOfInitial("6")
		plain.Annotations = nil
		inner.Action(watch.Bookmark, plain)
		assert.Equal(t, watch.Bookmark, (<-events).Type)
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

// An object of a streaming list is listed if it is wanted and was not deleted again.
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

// following is a watch of shard 1, which holds ns/held, without its goroutine.
func following(t *testing.T) (c *informerCache, w *selectiveWatch, lw listWatch) {
	c = newPresenting(t, nil).cache
	c.assign(newShardSet(8, 1))
	lw = listWatch{nil, c}
	w = lw.prepare(t.Context(), &metav1.ListOptions{ResourceVersion: "7"})
	w.events = make(chan watch.Event, 9)
	none := newShardSet(8)
	c.ahead = []*ahead{{shards: none, version: 10}, {shards: none, version: 12}}
	return c, w, lw
}

// An event counts when it was passed on. If the watch has ended before that, the next one brings it
// again.
func TestEvents_Passed(t *testing.T) {
	quietLogs()
	held := item{}
	check := func(c *informerCache, isHeld bool, ahead int) {
		t.Helper()
		held.key = c.keys.hashOf(of(1, "ns/held", ""))
		assert.Equal(t, isHeld, c.isHeld(held))
		assert.Len(t, c.ahead, ahead)
	}
	plain := endOfInitial("11")
	plain.Annotations = nil
	for _, test := range []struct {
		e      watch.Event
		isHeld bool
	}{
		{watch.Event{Type: watch.Deleted, Object: of(1, "ns/held", "11")}, false},
		{watch.Event{Type: watch.Modified, Object: of(1, "ns/held", "11")}, true},
		{watch.Event{Type: watch.Modified, Object: of(3, "ns/held", "11")}, false},
		{watch.Event{Type: watch.Bookmark, Object: plain}, true},
		{watch.Event{Type: watch.Bookmark, Object: endOfInitial("11")}, true},
	} {
		c, w, _ := following(t)
		assert.True(t, w.pass(test.e))
		assert.Len(t, w.events, 1)
		check(c, test.isHeld, 1)

		c, w, _ = following(t)
		w.events = nil
		w.Stop()
		assert.False(t, w.pass(test.e))
		check(c, true, 2)
	}
	c, w, _ := following(t)
	for _, e := range []watch.Event{
		{Type: watch.Error, Object: &metav1.Status{}},
		{Type: watch.Added, Object: &metav1.Status{}},
		{Type: watch.Error, Object: of(3, "ns/a", "11")},
		{Type: watch.Bookmark, Object: &metav1.Status{}},
	} {
		assert.True(t, w.pass(e))
		assert.Equal(t, e, <-w.events, "the reflector says what is wrong")
	}
	check(c, true, 2)
	assert.False(t, c.filters())
	assert.True(t, w.pass(watch.Event{Type: watch.Added, Object: of(3, "ns/a", "11")}))
	assert.Empty(t, w.events)
	assert.True(t, c.filters())
}

// While a streaming list lasts, what was held before it stays, and a list of a watch that was given
// up does not count.
func TestEvents_InitialEventsChangeNothing(t *testing.T) {
	c, _, lw := following(t)
	o := metav1.ListOptions{SendInitialEvents: new(true)}
	w := lw.prepare(t.Context(), &o)
	w.events = make(chan watch.Event, 9)
	for _, e := range []watch.EventType{watch.Added, watch.Deleted} {
		assert.True(t, w.pass(watch.Event{Type: e, Object: of(1, "ns/held", "11")}))
	}
	assert.Len(t, w.events, 2)
	assert.True(t, c.isHeld(item{key: c.keys.hashOf(of(1, "ns/held", ""))}))
	assert.Len(t, c.ahead, 2)
	lw.prepare(t.Context(), &o)
	assert.False(t, w.pass(watch.Event{Type: watch.Bookmark, Object: endOfInitial("12")}))
	assert.True(t, c.isHeld(item{key: c.keys.hashOf(of(1, "ns/held", ""))}))
}

func TestJudge(t *testing.T) {
	const added, modified, deleted, none = watch.Added, watch.Modified, watch.Deleted, ""
	for _, test := range []struct {
		owned, held, other bool
		add, modify, del   watch.EventType // what becomes of each type
	}{
		{false, false, false, none, none, none},
		{false, true, false, none, none, deleted},
		{false, true, true, deleted, deleted, deleted},
		{true, false, false, added, modified, none},
		{true, true, false, added, modified, deleted},
		{true, true, true, added, modified, deleted},
	} {
		judged := func(e watch.EventType) watch.EventType {
			return judge(e, test.owned, test.held, test.other)
		}
		assert.Equal(t, test.add, judged(added), "%+v", test)
		assert.Equal(t, test.modify, judged(modified), "%+v", test)
		assert.Equal(t, test.del, judged(deleted), "%+v", test)
	}
}

// A change of an object in a shard that was given up is dropped, although it is stored still: the
// next watch removes it. An object's new value is known from its first event.
func TestEvents_Values(t *testing.T) {
	c, w, _ := following(t)
	i, err := c.item(of(1, "ns/held", "13"))
	require.NoError(t, err)
	other := i
	other.value = "another value in the shard"
	assert.Equal(t, watch.Modified, c.judge(w, watch.Modified, other, false))
	value, _ := c.keys.heldValue("ns/held")
	assert.Equal(t, other.value, value)
	assert.Equal(t, watch.Added, c.judge(w, watch.Added, i, false))
	value, _ = c.keys.heldValue("ns/held")
	assert.Equal(t, i.value, value)
	c.assign(newShardSet(8))
	assert.Empty(t, c.judge(w, watch.Modified, i, false))
}

// A watch lasts if shards come and go again, and ends when others come later.
func TestEvents_OtherShardsAreWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, lw := following(t)
		c.listedAt(t, "8", of(1, "ns/held", "5"))
		w := lw.prepare(t.Context(), &metav1.ListOptions{ResourceVersion: "8"})
		w.inner = watch.NewRaceFreeFake()
		defer w.Stop()
		events := w.ResultChan()
		for range 3 {
			c.assign(newShardSet(8, 1, 2))
			time.Sleep(coalesce / 2)
			c.assign(newShardSet(8, 1))
			time.Sleep(time.Minute)
			assert.False(t, w.Reselects())
		}
		began := time.Now()
		for shard := Shard(2); !w.Reselects() && shard < 8; shard++ { // moves do not end
			c.assign(newShardSet(8, 1, shard))
			time.Sleep(coalesce * 3 / 4)
			synctest.Wait()
		}
		<-events
		assert.Less(t, time.Since(began), 2*coalesce)
	})
}

// A watch of nothing has the newest version of the server now and then, if the server says it.
func TestEvents_NothingIsWanted(t *testing.T) {
	for _, example := range []runtime.Object{
		nil, &corev1.ConfigMap{}, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			quietLogs()
			c := newInformerCache(ByUID, 8, func() {})
			c.example = example
			c.listedAt(t, "7")
			var works atomic.Bool
			lw := listWatch{&scripted{list: func(metav1.ListOptions) (runtime.Object, error) {
				if !works.Load() {
					return nil, io.EOF
				}
				return listOf("9"), nil
			}}, c}
			w := lw.prepare(t.Context(), &metav1.ListOptions{ResourceVersion: "7"})
			defer w.Stop()
			events := w.ResultChan()
			select {
			case e := <-events:
				t.Fatal(e)
			case <-time.After(5 * time.Minute):
			}
			works.Store(true)
			e := <-events
			assert.Equal(t, watch.Bookmark, e.Type)
			assert.Equal(t, "9", e.Object.(metav1.Object).GetResourceVersion())
			if example != nil {
				assert.IsType(t, example, e.Object)
				if _, typed := example.(*corev1.ConfigMap); !typed {
					assert.Equal(t, example.GetObjectKind().GroupVersionKind(),
						e.Object.GetObjectKind().GroupVersionKind())
				}
			}
		})
	}
}
