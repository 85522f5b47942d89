// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"fmt"
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
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// opening is a server that gives each request for a watch the same answer.
type opening struct {
	*scripted
	w   watch.Interface
	err error
}

func (o opening) WatchWithContext(
	context.Context, metav1.ListOptions,
) (watch.Interface, error) {
	return o.w, o.err
}

// holding returns a cache that holds the shards.
func holding(t *testing.T, shards ...Shard) *informerCache {
	c := newInformerCache(byName, 8, func() {})
	c.store = store.New(store.MetaNamespaceKeyFunc, store.Options{})
	c.assign(sets.New[Shard](shards...))
	c.listedAt(t, "7")
	c.store.Bookmark("7")
	return c
}

// open opens a watch from the version that holding has.
func open(t *testing.T, lw listWatch) *selectiveWatch {
	w, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{
		ResourceVersion: "7", TimeoutSeconds: new(int64(60)),
	})
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	return w.(*selectiveWatch)
}

// A watch that cannot be opened is passed on as the server has answered it, and leaves nothing
// behind in the context of the reflector; nor does one that was stopped.
func TestWatch_LeavesNothing(t *testing.T) {
	fake := func() watch.Interface { return watch.NewRaceFreeFake() }
	for name, test := range map[string]opening{
		"failed":           {err: io.EOF},
		"failed, and open": {w: fake(), err: io.EOF},
		"nothing":          {},
		"unreachable":      {w: watch.NewEmptyWatch()},
		"open":             {w: fake()},
	} {
		t.Run(name, func(t *testing.T) {
			count := 0
			lw := listWatch{test, holding(t, 1)}
			w, err := lw.WatchWithContext(registered{t.Context(), &count}, metav1.ListOptions{
				ResourceVersion: "7",
			})
			assert.Equal(t, test.err, err)
			if name == "open" {
				assert.Equal(t, 1, count)
				w.Stop()
				assert.True(t, test.w.(*watch.RaceFreeFakeWatcher).IsStopped())
			} else {
				assert.Equal(t, test.w, w)
			}
			assert.Zero(t, count)
		})
	}
}

// A list is handed over when the store has all that was passed on before it began.
func TestWatch_WaitsForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := holding(t, 1)
		settle := func(version string) error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			return c.settle(ctx, version)
		}
		assert.ErrorIs(t, settle("9"), context.DeadlineExceeded)
		assert.NoError(t, settle("text"), "it is never known")
		c.store.Bookmark("9")
		c.isUnwritten.Store(true)
		assert.ErrorIs(t, settle("9"), context.DeadlineExceeded)
		c.isUnwritten.Store(false)
		assert.NoError(t, settle("9"))
	})
}

// following is a watch of shard 1, which holds ns/held, without its goroutine.
func following(t *testing.T) (c *informerCache, w *selectiveWatch) {
	quietLogs()
	c = newInformerCache(ByUID, 8, func() {})
	c.assign(sets.New[Shard](1))
	c.listedAt(t, "7", of(1, "ns/held", "5"))
	c.written(of(1, "ns/held", "5"))
	w = listWatch{nil, c}.prepare(t.Context(), &metav1.ListOptions{ResourceVersion: "7"})
	t.Cleanup(w.Stop)
	w.events = make(chan watch.Event, 9)
	return c, w
}

func (c *informerCache) isHeld(t *testing.T, obj runtime.Object) bool {
	i, err := c.item(obj)
	require.NoError(t, err)
	_, held := c.keys.held[i.key]
	return held
}

// An event is passed on, or becomes the delete of an object that is another replica's now, or is
// dropped.
func TestWatch_Judge(t *testing.T) {
	const added, modified, deleted = watch.Added, watch.Modified, watch.Deleted
	for _, test := range []struct {
		t      watch.EventType
		obj    *corev1.ConfigMap
		want   watch.EventType
		isHeld bool // afterwards
	}{
		{added, of(1, "ns/a", "10"), added, true},
		{modified, of(1, "ns/held", "10"), modified, true},
		{deleted, of(1, "ns/held", "10"), deleted, false},
		{deleted, of(1, "ns/a", "10"), "", false},
		{added, of(3, "ns/a", "10"), "", false},
		{deleted, of(3, "ns/a", "10"), "", false},
		{modified, of(3, "ns/held", "10"), deleted, false},
		{deleted, of(3, "ns/held", "10"), deleted, false},
	} {
		name := fmt.Sprint(test.t, test.obj.Name)
		c, w := following(t)
		assert.True(t, w.pass(watch.Event{Type: test.t, Object: test.obj}))
		assert.Equal(t, test.isHeld, c.isHeld(t, test.obj), name)
		if test.want == "" {
			assert.Empty(t, w.events, name)
			assert.Equal(t, "7", w.reached)
			continue
		}
		assert.Equal(t, test.want, (<-w.events).Type, name)
		assert.Equal(t, "10", w.reached)

		c, w = following(t) // if it was not passed on, the next watch brings it again
		w.events = nil
		w.Stop()
		assert.False(t, w.pass(watch.Event{Type: test.t, Object: test.obj}))
		assert.Equal(t, "7", w.reached)
		if test.obj.Name == "held" {
			assert.True(t, c.isHeld(t, test.obj), name)
		}
	}
	c, w := following(t)
	for _, e := range []watch.Event{
		{Type: watch.Error, Object: &metav1.Status{}},
		{Type: added, Object: &metav1.Status{}},
		{Type: watch.Error, Object: of(3, "ns/a", "11")},
		{Type: watch.Bookmark, Object: of(3, "ns/a", "11")},
	} {
		assert.True(t, w.pass(e))
		assert.Equal(t, e, <-w.events, "the reflector says what is wrong")
	}
	assert.Equal(t, "11", w.reached)
	assert.False(t, c.status().filters)
	assert.True(t, w.pass(watch.Event{Type: added, Object: of(3, "ns/a", "11")}))
	assert.True(t, c.status().filters)

	c.assign(sets.New[Shard]())
	assert.True(t, w.pass(watch.Event{Type: modified, Object: of(1, "ns/held", "12")}))
	assert.Empty(t, w.events, "its shard was given up")
	assert.True(t, w.pass(watch.Event{Type: deleted, Object: of(1, "ns/held", "13")}))
	assert.Len(t, w.events, 1, "it is stored still")
}

// An event that was passed on already becomes a bookmark, until the watch is past all of these.
func TestWatch_Ahead(t *testing.T) {
	c, w := following(t)
	i, err := c.item(of(1, "ns/held", ""))
	require.NoError(t, err)
	c.ahead = ahead{upTo: map[string]uint64{i.key: 10}, newest: 12}
	for _, test := range []struct {
		obj  *corev1.ConfigMap
		want watch.EventType
	}{
		{of(1, "ns/held", "9"), watch.Bookmark},
		{of(1, "ns/other", "9"), watch.Modified},
		{of(1, "ns/held", "10"), watch.Bookmark},
		{of(1, "ns/held", "text"), watch.Modified},
		{of(1, "ns/held", "11"), watch.Modified},
		{of(1, "ns/other", "12"), watch.Modified},
	} {
		assert.True(t, w.pass(watch.Event{Type: watch.Modified, Object: test.obj}))
		assert.Equal(t, test.want, (<-w.events).Type, test.obj.ResourceVersion)
		assert.Equal(t, uint64(12), c.ahead.newest)
	}
	assert.True(t, w.pass(watch.Event{Type: watch.Added, Object: of(1, "ns/other", "13")}))
	assert.Empty(t, c.ahead)
}

// A list beside the watch gets what the watch has brought meanwhile, if that is newer.
func TestWatch_Merge(t *testing.T) {
	begin := func(t *testing.T, from string) (*informerCache, *selectiveWatch) {
		c, w := following(t)
		c.assign(sets.New[Shard](1, 2))
		c.backoff.Step()
		w.reached = from
		w.list = w.lw.newRelist(from)
		w.list.choose(&metav1.ListOptions{})
		for _, obj := range []*corev1.ConfigMap{
			of(1, "ns/held", "5"), of(1, "ns/moved", "5"), of(1, "ns/left", "5"),
			of(2, "ns/new", "18"),
		} {
			require.True(t, w.list.takes(t.Context(), obj))
			w.list.items = append(w.list.items, obj)
		}
		w.list.version = "20"
		return c, w
	}
	pass := func(w *selectiveWatch, e watch.EventType, obj *corev1.ConfigMap) {
		require.True(t, w.pass(watch.Event{Type: e, Object: obj}))
	}
	t.Run("newer", func(t *testing.T) {
		c, w := begin(t, "7")
		gone, late := of(1, "ns/gone", "19"), of(1, "ns/late", "30")
		pass(w, watch.Added, gone)
		pass(w, watch.Modified, of(1, "ns/held", "20")) // the list has it, or a newer one
		pass(w, watch.Deleted, of(1, "ns/gone", "21"))
		pass(w, watch.Added, of(1, "ns/moved", "22"))
		pass(w, watch.Modified, of(2, "ns/moved", "23")) // into a new shard
		pass(w, watch.Added, of(1, "ns/left", "24"))
		pass(w, watch.Modified, of(3, "ns/left", "25")) // into another replica's
		pass(w, watch.Added, late)
		late.UID = "changed by a transform"
		pass(w, watch.Added, of(2, "ns/new", "31"))
		w.end()
		require.NotNil(t, w.result)
		assert.Equal(t, []runtime.Object{
			of(1, "ns/held", "5"), of(2, "ns/new", "18"), of(2, "ns/moved", "23"),
			of(1, "ns/late", "30"),
		}, w.result.items)
		upTo := map[string]uint64{}
		for _, key := range []string{
			"ns/held", "ns/gone", "ns/moved", "ns/left", "ns/late", "ns/new",
		} {
			upTo[key] = w.result.newer.upTo[key]
		}
		assert.Equal(t, map[string]uint64{
			"ns/held": 0, "ns/gone": 21, "ns/moved": 23, "ns/left": 25, "ns/late": 30,
			"ns/new": 0,
		}, upTo)

		assert.Equal(t, sets.New[Shard](1), c.held)
		assert.NotNil(t, w.Reselected())
		assert.Nil(t, w.Reselected())
		assert.Equal(t, sets.New[Shard](1, 2), c.held)
		assert.Equal(t, uint64(30), c.ahead.newest)
		assert.Len(t, c.keys.held, 4)
		assert.Len(t, c.unwritten, 2)
		assert.Equal(t, newBackoff(), c.backoff, "the next failure is the first one")
	})
	for name, test := range map[string]struct{ from, version, list string }{
		"a change that cannot be compared": {"7", "text", "20"},
		"a list that cannot be compared":   {"7", "10", "text"},
		"a beginning that cannot be":       {"text", "10", "20"},
		"a server that was restored":       {"21", "22", "20"},
	} {
		t.Run(name, func(t *testing.T) {
			_, w := begin(t, test.from)
			w.list.version = test.list
			pass(w, watch.Modified, of(1, "ns/held", test.version))
			<-w.events
			w.end()
			assert.Nil(t, w.Reselected())
			assert.True(t, apierrors.IsResourceExpired(apierrors.FromObject((<-w.events).Object)))

			_, w = begin(t, test.from)
			w.list.version = test.list
			w.end()
			assert.NotNil(t, w.Reselected(), "there was no change")
		})
	}
}

// A watch lasts if shards come and go again, and lists when others come later.
func TestWatch_OtherShardsAreWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := holding(t, 1)
		lists := 0
		lw := listWatch{opening{&scripted{list: func(metav1.ListOptions) (runtime.Object, error) {
			lists++
			return listOf("9"), nil
		}}, watch.NewRaceFreeFake(), nil}, c}
		w := open(t, lw)
		events := w.ResultChan()
		synctest.Wait()
		for range 3 {
			c.assign(sets.New[Shard](1, 2))
			time.Sleep(coalesce / 2)
			c.assign(sets.New[Shard](1))
			time.Sleep(time.Minute)
			assert.Zero(t, lists)
		}
		began := time.Now()
		for shard := Shard(2); lists == 0 && shard < 8; shard++ { // moves do not end
			c.assign(sets.New[Shard](1, shard))
			time.Sleep(coalesce * 3 / 4)
			synctest.Wait()
		}
		<-events
		assert.Less(t, time.Since(began), 2*coalesce)
		assert.NotNil(t, w.Reselected())
	})
}

// While lists fail, shards that come and go do not make the watch list more often.
func TestWatch_ListsFail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quietLogs()
		c, lists := holding(t, 1), 0
		lw := listWatch{&scripted{list: func(metav1.ListOptions) (runtime.Object, error) {
			lists++
			return nil, io.EOF
		}}, c}
		w := open(t, lw)
		w.ResultChan()
		for i := range 200 {
			c.assign(sets.New[Shard](1, 2+Shard(i%5)))
			time.Sleep(100 * time.Millisecond)
			if i%10 == 0 { // nor do watches that end soon
				w.Stop()
				w = open(t, lw)
				w.ResultChan()
			}
		}
		w.Stop()
		synctest.Wait()
		assert.Greater(t, lists, 2)
		assert.Less(t, lists, 6)
	})
}

// If By panics in a list, the goroutine of the watch panics, which survives if the process is to.
func TestWatch_AListPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quietLogs()
		defer func(really bool) { utilruntime.ReallyCrash = really }(utilruntime.ReallyCrash)
		utilruntime.ReallyCrash = false
		c := holding(t, 1)
		c.by = ByFunc(func(metav1.Object) string { panic("broken") })
		c.assign(sets.New[Shard](1, 2))
		lw := listWatch{opening{&scripted{list: func(metav1.ListOptions) (runtime.Object, error) {
			return listOf("9", inShard(1)), nil
		}}, watch.NewRaceFreeFake(), nil}, c}
		w := open(t, lw)
		_, isOpen := <-w.ResultChan()
		assert.False(t, isOpen)
		assert.Nil(t, w.Reselected())
		synctest.Wait() // HandleCrash looks at ReallyCrash after the channel is closed
	})
}

// A list that the server does not answer is given up, and requested again.
func TestWatch_AListIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, lists := holding(t, 1), 0
		inner := watch.NewRaceFreeFake()
		lw := listWatch{&reflector.ListWatch{
			ListWithContextFunc: func(
				ctx context.Context, _ metav1.ListOptions,
			) (runtime.Object, error) {
				lists++
				<-ctx.Done()
				return nil, ctx.Err()
			},
			WatchFuncWithContext: func(
				context.Context, metav1.ListOptions,
			) (watch.Interface, error) {
				return inner, nil
			},
		}, c}
		c.assign(sets.New[Shard](1, 2))
		w := open(t, lw)
		events := w.ResultChan()
		for i := range 3 {
			time.Sleep(50 * time.Second)
			synctest.Wait()
			assert.Equal(t, i+1, lists)
			c.assign(sets.New[Shard](1, 3+Shard(i))) // a move does not begin another one
			inner.Modify(inShard(1))
			assert.Equal(t, watch.Modified, (<-events).Type)
			time.Sleep(15 * time.Second)
		}
		w.Stop()
		_, isOpen := <-events
		assert.False(t, isOpen)
	})
}

// reselecting is a watch that ends because another selection follows.
type reselecting struct {
	*watch.RaceFreeFakeWatcher
	selection *reflector.Selection
}

func (r reselecting) Reselected() *reflector.Selection { return r.selection }

// The inner watch has selected something, and the store has what was passed on before only after
// the time of the watch: then a list takes its place.
func TestWatch_ASelectionWaitsForTheStoreInVain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quietLogs()
		c := holding(t, 1)
		c.isUnwritten.Store(true)
		inner := reselecting{watch.NewRaceFreeFake(), &reflector.Selection{ResourceVersion: "9"}}
		lw := listWatch{opening{&scripted{list: func(metav1.ListOptions) (runtime.Object, error) {
			return listOf("11", inShard(1)), nil
		}}, inner, nil}, c}
		w := open(t, lw)
		events := w.ResultChan()
		inner.Stop()
		time.Sleep(61 * time.Second)
		c.isUnwritten.Store(false)
		select {
		case _, isOpen := <-events:
			assert.False(t, isOpen)
		case <-time.After(time.Minute):
			t.Fatal("it is not listed again")
		}
		assert.Equal(t, "11", w.Reselected().ResourceVersion)
	})
}

// A watch of nothing lists the newest version of the server after a while, if the server says it.
func TestWatch_NothingIsWanted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quietLogs()
		c := holding(t)
		var works atomic.Bool
		lw := listWatch{&scripted{list: func(o metav1.ListOptions) (runtime.Object, error) {
			assert.Equal(t, metav1.ListOptions{Limit: 2}, o)
			if !works.Load() {
				return nil, io.EOF
			}
			time.Sleep(3 * time.Second)
			return listOf("9", inShard(1)), nil
		}}, c}
		w := open(t, lw)
		events := w.ResultChan()
		select {
		case e := <-events:
			t.Fatal(e)
		case <-time.After(5 * time.Minute):
		}
		works.Store(true)
		_, isOpen := <-events
		assert.False(t, isOpen)
		s := w.Reselected()
		assert.Empty(t, s.Items)
		assert.Equal(t, "9", s.ResourceVersion)
		assert.Equal(t, 3*time.Second, time.Since(s.AsOf))
	})
}

// quietWatch is a watch that knows how long it is quiet.
type quietWatch struct {
	watch.Interface
	events chan watch.Event
	quiet  bool
}

func (q *quietWatch) ResultChan() <-chan watch.Event { return q.events }

func (q *quietWatch) Quiet() (arrived time.Time, largest int, ok bool) {
	return time.Unix(1, 0), 5, q.quiet
}

// A watch is quiet if the inner one is, and waits for it.
func TestWatch_Quiet(t *testing.T) {
	inner := &quietWatch{events: make(chan watch.Event, 1), quiet: true}
	w := &selectiveWatch{inner: inner}
	is := func(want bool) {
		t.Helper()
		arrived, largest, ok := w.Quiet()
		assert.Equal(t, want, ok)
		assert.Equal(t, 5, largest)
		assert.Equal(t, time.Unix(1, 0), arrived)
	}
	is(false)
	w.waits.Store(true)
	is(true)
	inner.events <- watch.Event{}
	is(false)
	<-inner.events
	is(true)
	inner.quiet = false
	is(false)
}

func TestNumber(t *testing.T) {
	for version, want := range map[string]uint64{
		"19": 19, "": 0, "0": 0, "text": 0, "99999999999999999999": 0,
	} {
		n, ok := number(version)
		assert.Equal(t, want > 0, ok, version)
		if ok {
			assert.Equal(t, want, n)
		}
	}
}
