// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

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
	c.assign(newShardSet(8, shards...))
	c.listedAt(t, "7")
	c.store.Bookmark("7")
	return c
}

// A watch that cannot be opened is passed on as the server has answered it, and leaves nothing
// behind in the context of the reflector; nor does one that was stopped.
func TestWatch_LeavesNothing(t *testing.T) {
	open := func() watch.Interface { return watch.NewRaceFreeFake() }
	for name, test := range map[string]opening{
		"failed":           {err: io.EOF},
		"failed, and open": {w: open(), err: io.EOF},
		"nothing":          {},
		"unreachable":      {w: watch.NewEmptyWatch()},
		"open":             {w: open()},
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

// A watch of other shards is opened when the store has all that was passed on before. If versions
// cannot be compared, that is never known, and the reflector lists.
func TestWatch_WaitsForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := holding(t, 1)
		lw := listWatch{opening{w: watch.NewRaceFreeFake()}, c}
		begin := func(ctx context.Context, version string) error {
			w, err := lw.WatchWithContext(ctx, metav1.ListOptions{ResourceVersion: version})
			if err == nil {
				w.Stop()
			}
			return err
		}
		require.NoError(t, begin(t.Context(), "9"), "no other shards")
		c.assign(newShardSet(8, 1, 2))
		assert.True(t, apierrors.IsResourceExpired(begin(t.Context(), "text")))
		short := func() context.Context {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			t.Cleanup(cancel)
			return ctx
		}
		assert.ErrorIs(t, begin(short(), "9"), context.DeadlineExceeded)
		c.store.Bookmark("9")
		c.isPending.Store(true)
		assert.ErrorIs(t, begin(short(), "9"), context.DeadlineExceeded)
		c.isPending.Store(false)
		assert.NoError(t, begin(short(), "9"))
	})
}

// The options of a request decide what a watch is.
func TestWatch_Prepare(t *testing.T) {
	c := holding(t, 1)
	lw := listWatch{nil, c}
	before := []*ahead{{version: 8}, {version: 30}}
	for _, streams := range []*bool{nil, new(false), new(true)} {
		c.ahead = before
		o := metav1.ListOptions{
			ResourceVersion: "9", TimeoutSeconds: new(int64(7)), SendInitialEvents: streams,
		}
		w := lw.prepare(t.Context(), &o)
		assert.Equal(t, 7*time.Second, w.timeout)
		if streams != nil && *streams {
			assert.Equal(t, "30", o.ResourceVersion, "not older than what is held")
			assert.NotNil(t, w.listing)
			assert.Len(t, c.ahead, 2)
		} else {
			assert.Equal(t, "9", o.ResourceVersion)
			assert.Nil(t, w.listing)
			assert.Len(t, c.ahead, 1, "the reflector has reached the other one")
		}
		before = []*ahead{{version: 8}, {version: 30}}
	}
	assert.Equal(t, forever, lw.prepare(t.Context(), &metav1.ListOptions{}).timeout)
}

// If a watch ends while new shards are listed, the next one begins where it began, and does not
// pass on again what it has brought meanwhile.
func TestWatch_EndsWhileNewShardsAreListed(t *testing.T) {
	c := holding(t, 1)
	c.assign(newShardSet(8, 1, 2))
	lw := listWatch{nil, c}
	first := lw.prepare(t.Context(), &metav1.ListOptions{ResourceVersion: "7"})
	c.begin(first)
	p := &presenting{
		selectiveWatch: first, list: &ahead{}, meanwhile: first.meanwhile,
		newest: map[uint64]uint64{},
	}
	obj := inShard(1)
	obj.ResourceVersion = "20"
	first.events = make(chan watch.Event, 9)
	require.NoError(t, p.passMeanwhile(watch.Event{Type: watch.Added, Object: obj}))
	i, err := c.item(obj)
	require.NoError(t, err)
	require.Equal(t, 1, len(c.pending.passed))

	next := lw.prepare(t.Context(), &metav1.ListOptions{ResourceVersion: "7"})
	c.begin(first)
	assert.Equal(t, 1, len(c.pending.passed), "it was given up")
	assert.Equal(t, watch.Bookmark, c.judge(next, watch.Added, i, false))
	i.version = "21"
	assert.Equal(t, watch.Modified, c.judge(next, watch.Modified, i, false))
}

// A watch of other shards begins with the deletes of what is not held any more. They count until
// the store has them.
func TestWatch_Dropped(t *testing.T) {
	c := holding(t, 1)
	kept, moved, alien := inShard(1), inShard(2), configMap("ns/alien")
	c.assign(newShardSet(8, 1, 2, shardOf("", 8)))
	c.listedAt(t, "8", kept, moved)
	for _, obj := range []any{kept, moved, alien} {
		require.NoError(t, c.store.Add(obj))
		c.written(obj)
	}
	c.assign(newShardSet(8, 1, shardOf("", 8)))
	lw := listWatch{nil, c}
	dropped := func(most int) (w *selectiveWatch, keys []string) {
		w = lw.prepare(t.Context(), &metav1.ListOptions{ResourceVersion: "8"})
		require.True(t, w.changes)
		c.begin(w)
		for d := range (selectionChange{w}).Dropped() {
			keys = append(keys, d.Key)
			if len(keys) == most {
				break
			}
		}
		return w, keys
	}
	w, keys := dropped(1)
	assert.Len(t, keys, 1)
	require.NoError(t, c.presented(w, &ahead{}))
	assert.True(t, c.leftovers, "the reflector lists again")

	w, keys = dropped(3)
	assert.ElementsMatch(t, []string{
		store.MetaObjectToName(moved).String(), store.MetaObjectToName(alien).String(),
	}, keys)
	assert.Len(t, c.pending.passed, 2)
	require.NoError(t, c.presented(w, &ahead{}))
	assert.False(t, c.leftovers)
	assert.True(t, c.isPending.Load())
	c.written(moved)
	assert.True(t, c.isPending.Load())
	c.written(alien)
	assert.False(t, c.isPending.Load())
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

// An event is covered by what was passed on if that was not older.
func TestAhead_Covers(t *testing.T) {
	all := &ahead{shards: newShardSet(8, 1), version: 20}
	list := &ahead{
		shards: newShardSet(8, 1), version: 20, listed: map[uint64]uint64{1: 10, 2: 30},
	}
	for name, test := range map[string]struct {
		a       *ahead
		version string
		key     uint64
		shard   Shard
		held    bool
		want    bool
	}{
		"passed on":                    {all, "20", 1, 1, true, true},
		"newer":                        {all, "21", 1, 1, true, false},
		"of another shard":             {all, "20", 1, 2, true, false},
		"no number":                    {all, "text", 1, 1, true, false},
		"zero":                         {all, "0", 1, 1, true, false},
		"listed":                       {list, "10", 1, 1, true, true},
		"listed in another shard":      {list, "10", 1, 2, true, true},
		"newer than listed":            {list, "11", 1, 1, true, false},
		"gone when it was listed":      {list, "11", 3, 1, false, true},
		"of another shard, not listed": {list, "11", 3, 2, false, false},
		"held, not listed":             {list, "11", 3, 1, true, false},
	} {
		i := item{version: test.version, key: test.key, shard: test.shard}
		assert.Equal(t, test.want, test.a.covers(i, test.held), name)
	}
	c := newInformerCache(byName, 8, func() {})
	c.ahead = []*ahead{all, {version: 22}}
	c.reached("19")
	c.reached("text")
	c.reached("99999999999999999999") // more than 64 bits
	assert.Len(t, c.ahead, 2)
	c.reached("20")
	assert.Len(t, c.ahead, 1)
}
