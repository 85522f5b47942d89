// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/informer"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// byName has an object in the shard that its value says: a name chosen by inShard.
var byName = ByFunc(func(obj metav1.Object) string { return obj.GetName() })

// inShard returns an object that byName has in a shard of eight.
func inShard(shard Shard) *corev1.ConfigMap {
	for _, key := range someKeys(200) {
		if m := configMap(key); shardOf(m.Name, 8) == shard {
			m.ResourceVersion = "5"
			return m
		}
	}
	panic("no key")
}

// listedAt is a complete list of objects that the reflector stores.
func (c *informerCache) listedAt(t *testing.T, version string, objs ...runtime.Object) {
	o := metav1.ListOptions{}
	l := c.beginPage(&o)
	c.endList(t, l, version, objs...)
}

func (c *informerCache) endList(t *testing.T, l *listing, version string, objs ...runtime.Object) {
	for _, obj := range objs {
		l.takes(t.Context(), obj)
	}
	c.endPage(t.Context(), l, metav1.ListMeta{ResourceVersion: version})
	listWatch{nil, c}.prepare(t.Context(), &metav1.ListOptions{}).Stop() // what the reflector does
}

func beginList(c *informerCache) *listing { return c.beginPage(&metav1.ListOptions{}) }

// of returns an object with that key in a shard of eight, ByUID.
func of(shard Shard, key, version string) *corev1.ConfigMap {
	for i := 0; ; i++ {
		if uid := fmt.Sprint("uid-", i); shardOf(uid, 8) == shard {
			return versioned(key, version, uid)
		}
	}
}

// C2 and C4: a shard that is given up while it is listed is not held, even if it comes back at
// once, and what the list had of it is removed.
func TestInformerCache_AShardMovesWhileItIsListed(t *testing.T) {
	for _, back := range []bool{false, true} {
		c := newInformerCache(byName, 8, func() {})
		c.assign(sets.New[Shard](1, 2))
		assert.Empty(t, c.leftovers)
		l := beginList(c)
		c.assign(sets.New[Shard](1))
		if back {
			c.assign(sets.New[Shard](1, 2))
		}
		c.endList(t, l, "7", inShard(1), inShard(2))
		assert.Equal(t, sets.New[Shard](1), c.held, "back: %v", back)
		assert.Equal(t, sets.New[Shard](2), c.leftovers)
		assert.Equal(t, 1, len(c.unwritten))
		c.assign(sets.New[Shard](1, 2, 3))
		assert.Equal(t, sets.New[Shard](2), c.leftovers, "they are still there")
		assert.False(t, c.isSettledLocked())
		assert.Equal(t, sets.New[Shard](1, 3), beginList(c).wanted, "the next list removes them")
		c.listedAt(t, "8", inShard(1))
		assert.Empty(t, c.leftovers)
		assert.Equal(t, sets.New[Shard](1, 3), c.held)
		assert.False(t, c.isSettledLocked(), "and the one after that brings them again")
		assert.Equal(t, sets.New[Shard](1, 2, 3), beginList(c).wanted)
	}
}

// C3: a shard is stored when the store has all that was listed of it, and it was not given up.
func TestInformerCache_Stored(t *testing.T) {
	c := newInformerCache(byName, 8, func() {})
	c.assign(sets.New[Shard](1))
	c.listedAt(t, "7", inShard(1))
	assert.Empty(t, c.status().stored)
	c.written(inShard(1))
	assert.Equal(t, sets.New[Shard](1), c.status().stored)

	c.assign(sets.New[Shard](1, 2))
	c.listedAt(t, "8", inShard(1), inShard(2))
	assert.Equal(t, 1, len(c.unwritten), "of the new shard")
	assert.Equal(t, sets.New[Shard](1), c.status().stored)
	c.assign(sets.New[Shard](1))
	c.written(inShard(2))
	c.assign(sets.New[Shard](1, 2))
	assert.Equal(t, sets.New[Shard](1), c.status().stored, "it is back, and was not listed again")

	c.listedAt(t, "9", inShard(1))
	l := beginList(c)
	c.assign(sets.New[Shard](2))
	c.assign(sets.New[Shard](1, 2))
	c.endList(t, l, "9")
	assert.Equal(t, sets.New[Shard](2), c.status().stored)

	c.listedAt(t, "10", inShard(2))
	c.listedAt(t, "11", inShard(1), inShard(2))
	assert.Equal(t, sets.New[Shard](2), c.status().stored)
	c.listedAt(t, "12", inShard(2))
	assert.Equal(t, sets.New[Shard](1, 2), c.status().stored, "what was not written is gone")
}

// A store that replaces its content has a list at once, but not with an earlier one of the same
// version.
func TestInformerCache_AListReplacesTheContent(t *testing.T) {
	c := newInformerCache(byName, 8, func() {})
	c.assign(sets.New[Shard](1))
	o := metav1.ListOptions{}
	l := c.beginPage(&o)
	c.endPage(t.Context(), l, metav1.ListMeta{ResourceVersion: "7", Continue: "one"})
	o.Continue = "one"
	assert.Same(t, l, c.beginPage(&o))
	c.endList(t, l, "8", inShard(1))
	x := c.wrapIndexer(store.New(store.MetaNamespaceKeyFunc, store.Options{}))
	require.NoError(t, x.Replace([]any{inShard(2)}, "7"))
	assert.Empty(t, c.status().stored, "an earlier list")
	require.NoError(t, x.Replace([]any{inShard(1)}, "7"))
	assert.Equal(t, sets.New[Shard](1), c.status().stored)
	assert.False(t, c.isUnwritten.Load())
}

// A complete list is all that counts. A watch before it, and the versions that were passed on
// before, count no more: the versions of a server that was restored are lower.
func TestInformerCache_AListBeginsAnew(t *testing.T) {
	c := newInformerCache(byName, 8, func() {})
	c.assign(sets.New[Shard](1))
	c.listedAt(t, "90", inShard(1))
	lw := listWatch{nil, c}
	old := lw.prepare(t.Context(), &metav1.ListOptions{ResourceVersion: "90"})
	i, err := c.item(inShard(1))
	require.NoError(t, err)
	c.ahead = ahead{upTo: map[string]uint64{i.key: 5}, newest: 99}
	assert.Equal(t, watch.Bookmark, c.judge(old, watch.Modified, i))

	c.listedAt(t, "7", inShard(1))
	assert.Empty(t, c.ahead)
	c.forget(old, i)
	assert.Len(t, c.keys.held, 1, "the delete was before the list")
	assert.Empty(t, c.judge(old, watch.Modified, i))
	old.result = old.lw.newRelist("90")
	assert.Nil(t, old.Reselected())
}

// Each object of a list is noted: as progress, and as a sign whether the server selects.
func TestInformerCache_Received(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quietLogs()
		c := newInformerCache(ByUID, 8, func() {})
		c.assign(sets.New[Shard](1))
		assert.Zero(t, c.status().listed)
		uids := map[Shard]*corev1.ConfigMap{}
		for _, key := range someKeys(200) {
			uids[shardOf(key, 8)] = versioned(key, "5", key)
		}
		l := beginList(c)
		assert.True(t, l.takes(t.Context(), uids[1]))
		assert.Equal(t, time.Now(), c.status().listed)
		assert.False(t, c.status().filters)
		time.Sleep(2 * time.Second)
		assert.False(t, l.takes(t.Context(), uids[2]))
		assert.True(t, c.status().filters)
		assert.True(t, l.takes(t.Context(), uids[1]))
		assert.Equal(t, time.Now(), c.status().listed)
		c.endList(t, l, "7")
		assert.True(t, c.status().filters, "the list had one of another shard")
		assert.True(t, l.takes(t.Context(), &runtime.Unknown{}), "the reflector says what is wrong")
		assert.Len(t, l.listed, 1)
		c.listedAt(t, "8", uids[1])
		assert.False(t, c.status().filters)
		c.received(t.Context(), 1, sets.New[Shard](1))
		assert.False(t, c.status().filters)
		c.received(t.Context(), 2, sets.New[Shard](1))
		assert.True(t, c.status().filters)
		c.assign(sets.New[Shard]())
		c.listedAt(t, "9")
		assert.True(t, c.status().filters, "an empty list says nothing")
	})
}

// The wrappers of an informer's options see the requests and the writes.
func TestOptions_WrappersAreInside(t *testing.T) {
	o, calls := informer.Options{}, 0
	o.WrapIndexer = func(inner store.Indexer) store.Indexer { calls++; return unreadable{inner} }
	o.WrapListerWatcher = func(
		_ context.Context, lw reflector.ListerWatcher, _ runtime.Object,
	) reflector.ListerWatcher {
		calls++
		return lw
	}
	scriptedStory(t, ByUID, o, func(w *scriptedWorld) {
		assert.Equal(t, 2, calls)
		_, _, err := w.informer.GetIndexer().GetByKey("ns/a")
		assert.Error(t, err)
	})
}

// failing is a store of a caller that may fail to write.
type failing struct {
	store.Indexer
	err error
	txn *store.TransactionError
}

func (f *failing) Add(any) error                                            { return f.err }
func (f *failing) Update(any) error                                         { return f.err }
func (f *failing) Delete(any) error                                         { return f.err }
func (f *failing) Replace([]any, string) error                              { return f.err }
func (f *failing) Transaction(...store.Transaction) *store.TransactionError { return f.txn }

// C3: what the store has failed to write is not written.
func TestIndexer_CountsWhatWasWritten(t *testing.T) {
	inner := &failing{}
	c := newInformerCache(ByUID, 8, func() {})
	x := c.wrapIndexer(inner).(transactionIndexer)
	a, b := of(1, "ns/a", "5"), of(1, "ns/b", "5")
	begin := func() {
		c.assign(sets.New[Shard]())
		c.leftovers = sets.New[Shard]()
		c.assign(sets.New[Shard](1))
		c.listedAt(t, "7", a, b)
	}
	for _, err := range []error{errors.New("full"), nil} {
		inner.err = err
		for name, write := range map[string]func() error{
			"add": func() error { return x.Add(a) }, "update": func() error { return x.Update(a) },
			"delete": func() error { return x.Delete(a) },
		} {
			begin()
			assert.Equal(t, err, write())
			assert.Equal(t, err == nil, len(c.unwritten) == 1, name)
			assert.Empty(t, c.status().stored, name)
		}
		begin()
		assert.Equal(t, err, x.Replace([]any{a, b}, "7"))
		assert.Equal(t, err == nil, c.status().stored.Has(1))
	}
	both := []store.Transaction{{Object: a}, {Object: b}}
	for _, test := range []struct {
		err       *store.TransactionError
		unwritten int
	}{
		{nil, 0}, {&store.TransactionError{SuccessfulIndices: []int{1}}, 1},
		{&store.TransactionError{}, 2},
	} {
		begin()
		inner.txn = test.err
		assert.Same(t, test.err, x.Transaction(both...))
		assert.Len(t, c.unwritten, test.unwritten)
		assert.Equal(t, test.unwritten == 0, c.status().stored.Has(1))
	}
}
