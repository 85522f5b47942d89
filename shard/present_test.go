// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// of returns an object with that key in a shard of eight, ByUID.
func of(shard Shard, key, version string) *corev1.ConfigMap {
	for i := 0; ; i++ {
		if uid := fmt.Sprint("uid-", i); shardOf(uid, 8) == shard {
			return versioned(key, version, uid)
		}
	}
}

// newPresenting returns a watch that holds shard 1, and is about to list shard 2. It sends into
// events, which has room.
func newPresenting(t *testing.T, server *scripted) *presenting {
	quietLogs()
	c := newInformerCache(ByUID, 8, func() {})
	c.assign(newShardSet(8, 1))
	c.listedAt(t, "7", of(1, "ns/held", "5"))
	c.written(of(1, "ns/held", "5"))
	c.assign(newShardSet(8, 1, 2))
	w := listWatch{server, c}.prepare(t.Context(), &metav1.ListOptions{ResourceVersion: "7"})
	c.begin(w)
	w.events = make(chan watch.Event, 9)
	return &presenting{
		selectiveWatch: w, meanwhile: w.meanwhile, newest: map[uint64]uint64{},
		list: &ahead{shards: w.fresh, listed: map[uint64]uint64{}},
	}
}

// sent returns what was sent since the last call. All of it is pending, if it was no error.
func (p *presenting) sent() (sent []string) {
	for {
		select {
		case e := <-p.events:
			m, ok := e.Object.(metav1.Object)
			if !ok {
				sent = append(sent, string(e.Type))
				continue
			}
			sent = append(sent, fmt.Sprint(e.Type, " ", m.GetName(), " ", m.GetResourceVersion()))
		default:
			return sent
		}
	}
}

// Events that arrive while new shards are listed are passed on, dropped, or wait for the end of the
// list.
func TestPresenting_Meanwhile(t *testing.T) {
	const added, modified, deleted = watch.Added, watch.Modified, watch.Deleted
	for _, test := range []struct {
		name   string
		before func(p *presenting, key uint64)
		t      watch.EventType
		obj    *corev1.ConfigMap
		want   string // what is sent
		waits  bool
	}{
		{"held shard", nil, added, of(1, "ns/a", "10"), "ADDED a 10", false},
		{"of no order", nil, added, of(1, "ns/a", "text"), "ADDED a text", false},
		{"delete", nil, deleted, of(1, "ns/held", "10"), "DELETED held 10", false},
		{"unknown delete", nil, deleted, of(1, "ns/a", "10"), "", false},
		{"twice", func(p *presenting, key uint64) { p.newest[key] = 10 },
			added, of(1, "ns/a", "10"), "", false},
		{"covered", func(p *presenting, _ uint64) { p.meanwhile.version = 10 },
			modified, of(1, "ns/held", "10"), "", false},
		{"another's", nil, added, of(3, "ns/a", "10"), "", false},
		{"becomes another's", nil, modified, of(3, "ns/held", "10"), "DELETED held 10", false},
		{"becomes new", nil, modified, of(2, "ns/held", "10"), "MODIFIED held 10", false},
		{"new", nil, added, of(2, "ns/a", "10"), "", true},
		{"new, delete", nil, deleted, of(2, "ns/a", "10"), "", true},
		{"older than listed", func(p *presenting, key uint64) { p.list.listed[key] = 10 },
			added, of(2, "ns/a", "10"), "", false},
		{"newer than listed", func(p *presenting, key uint64) { p.list.listed[key] = 10 },
			modified, of(2, "ns/a", "11"), "MODIFIED a 11", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPresenting(t, nil)
			key := p.cache.keys.hashOf(test.obj)
			if test.before != nil {
				test.before(p, key)
			}
			require.NoError(t, p.passMeanwhile(watch.Event{Type: test.t, Object: test.obj}))
			var want []string
			if test.want != "" {
				want = []string{test.want}
			}
			assert.Equal(t, want, p.sent())
			assert.Equal(t, test.waits, len(p.waiting) == 1)
			assert.Len(t, p.cache.pending.passed, len(want))
			if want == nil {
				return
			}
			if version, ok := number(test.obj.ResourceVersion); ok {
				assert.Equal(t, version, p.meanwhile.version)
				older := of(2, test.obj.Namespace+"/"+test.obj.Name, "9")
				require.NoError(t, p.passListed(older))
				assert.Empty(t, p.sent(), "the list is older")
			}
			isHeld := p.cache.isHeld(item{key: key})
			assert.Equal(t, test.want[:7] != "DELETED", isHeld)
		})
	}
}

// The reflector gets an event that is no change of an object, and says what is wrong.
func TestPresenting_Errors(t *testing.T) {
	p := newPresenting(t, nil)
	status := &metav1.Status{}
	for _, e := range []watch.Event{
		{Type: watch.Error, Object: status}, {Type: watch.Added, Object: status},
		{Type: watch.Error, Object: of(1, "ns/held", "10")},
		{Type: watch.Error, Object: of(2, "ns/a", "10")},
	} {
		require.NoError(t, p.passMeanwhile(e))
		assert.Len(t, p.sent(), 1)
		assert.Empty(t, p.waiting)
		assert.Empty(t, p.cache.pending.passed)
	}
	assert.False(t, p.cache.filters())
	require.NoError(t, p.passMeanwhile(watch.Event{Type: watch.Added, Object: of(3, "ns/a", "10")}))
	assert.True(t, p.cache.filters(), "the server does not select")
	assert.True(t, apierrors.IsResourceExpired(p.passListed(of(2, "ns/a", "text"))))

	p.events = nil
	p.Stop()
	assert.ErrorIs(t, p.passMeanwhile(watch.Event{Type: watch.Error, Object: status}), errStopped)
	assert.ErrorIs(t, p.passListed(of(2, "ns/b", "10")), errStopped)
	p.waiting = []watch.Event{{Type: watch.Added, Object: of(1, "ns/b", "20")}}
	assert.ErrorIs(t, p.passWaiting(), errStopped)
	assert.Empty(t, p.cache.pending.passed, "it was not passed on")
	assert.False(t, p.cache.isPending.Load())
}

// After the list, the events that have waited are passed on if they are newer.
func TestPresenting_Waiting(t *testing.T) {
	p := newPresenting(t, nil)
	wait := func(e watch.EventType, shard Shard, key, version string) {
		p.waiting = append(p.waiting, watch.Event{Type: e, Object: of(shard, key, version)})
	}
	wait(watch.Added, 2, "ns/listed", "10")
	wait(watch.Modified, 2, "ns/listed", "12")
	wait(watch.Added, 2, "ns/new", "13")
	wait(watch.Added, 2, "ns/new", "13")
	wait(watch.Deleted, 2, "ns/new", "14")
	wait(watch.Deleted, 2, "ns/new", "14")
	wait(watch.Deleted, 2, "ns/unknown", "15")
	wait(watch.Deleted, 2, "ns/gone", "16")
	wait(watch.Added, 2, "ns/old", "9")
	wait(watch.Added, 2, "ns/text", "text")
	for _, key := range []string{"ns/listed", "ns/gone"} {
		require.NoError(t, p.passListed(of(2, key, "11")))
	}
	p.list.version = 11
	p.sent()
	require.NoError(t, p.cache.presented(p.selectiveWatch, p.list))
	require.NoError(t, p.passWaiting())
	assert.Equal(t, []string{
		"MODIFIED listed 12", "ADDED new 13", "DELETED new 14", "DELETED gone 16",
		"ADDED text text",
	}, p.sent())
}

// An event that has waited is dropped if its shard was given up meanwhile, and the objects that
// were listed of it are removed.
func TestPresenting_AShardIsGivenUp(t *testing.T) {
	p := newPresenting(t, nil)
	p.dropped = true
	p.cache.nextRetry()
	p.waiting = []watch.Event{{Type: watch.Added, Object: of(2, "ns/new", "10")}}
	require.NoError(t, p.passListed(of(2, "ns/listed", "9")))
	p.sent()
	p.cache.assign(newShardSet(8, 1))
	require.NoError(t, p.cache.presented(p.selectiveWatch, p.list))
	require.NoError(t, p.passWaiting())
	assert.Empty(t, p.sent())
	assert.True(t, p.cache.leftovers)
	assert.Equal(t, newShardSet(8, 1), p.cache.held)
	assert.Equal(t, newBackoff(), p.cache.backoff, "the next failure is the first one")
}

// A watch that has ended finds that out late, when a list has brought the object already: that one
// is pending.
func TestPresenting_NotPassed(t *testing.T) {
	p := newPresenting(t, nil)
	c := p.cache
	i, err := c.item(of(2, "ns/a", "9"))
	require.NoError(t, err)
	before := c.passing(watch.Added, i)
	assert.Len(t, c.pending.passed, 1)
	c.listedAt(t, "10", of(2, "ns/a", "9"))
	c.notPassed(i, before)
	assert.Len(t, c.pending.passed, 1)
	assert.False(t, c.stored().has(2))
	c.written(of(2, "ns/a", "9"))
	assert.True(t, c.stored().has(2))

	before = c.passing(watch.Modified, i)
	assert.True(t, c.isPending.Load())
	c.notPassed(i, before)
	assert.False(t, c.isPending.Load())
}

// New shards are listed as new as what was passed on, and the list is checked.
func TestPresenting_List(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var list runtime.Object
		var requested metav1.ListOptions
		server := &scripted{list: func(o metav1.ListOptions) (runtime.Object, error) {
			requested = o
			return list, nil
		}}
		p := newPresenting(t, server)
		p.meanwhile.version = 30
		objects := make(chan runtime.Object, 9)
		time.Sleep(time.Minute)
		list = listOf("31", of(2, "ns/a", "10"))
		require.NoError(t, p.listTo(t.Context(), objects))
		assert.Equal(t, "30", requested.ResourceVersion)
		assert.Equal(t, metav1.ResourceVersionMatchNotOlderThan, requested.ResourceVersionMatch)
		assert.Len(t, objects, 1)
		assert.Equal(t, uint64(31), p.list.version)
		assert.Equal(t, time.Now(), p.cache.progress())
		assert.False(t, p.cache.filters())

		list = listOf("31", of(2, "ns/a", "10"), of(3, "ns/b", "10"))
		require.NoError(t, p.listTo(t.Context(), objects))
		assert.Len(t, objects, 2)
		assert.True(t, p.cache.filters())
		list = listOf("text")
		assert.True(t, apierrors.IsResourceExpired(p.listTo(t.Context(), objects)))
		list = &metav1.Status{}
		assert.Error(t, p.listTo(t.Context(), objects))
	})
}
