// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// laggingChildren are the children of an owner, on a server and in a cache that learns of them
// later.
type laggingChildren struct {
	version, cachedVersion   int // of the server and the cache
	children, cachedChildren int
}

func (l *laggingChildren) create() string {
	l.version++
	l.children++
	return strconv.Itoa(l.version)
}

func (l *laggingChildren) catchUp() { l.cachedVersion, l.cachedChildren = l.version, l.children }

func (l *laggingChildren) cacheVersion() string { return strconv.Itoa(l.cachedVersion) }

// kubernetes-sigs/controller-runtime#3320: the cache is stale right after a write. An owner that
// changes at that moment gets a second child, unless reconcile waits for its own write.
func TestStory_OwnWriteIsSeenBeforeTheNextCall(t *testing.T) {
	for name, tc := range map[string]struct {
		patient bool
		want    int
	}{
		"without Writes": {patient: false, want: 2},
		"with Writes":    {patient: true, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			story(t, Options[string]{}, func(w *world) {
				pods := &laggingChildren{version: 7, cachedVersion: 7}
				var writes Writes[string]
				w.c.reconcile = func(_ context.Context, key string) (Result, error) {
					if tc.patient && !writes.Seen(key, pods.cacheVersion()) {
						w.narrate.Event("worker", "the cache has not seen the child: wait")
						return Result{RequeueAfter: time.Second}, nil
					}
					if pods.cachedChildren == 0 {
						version := pods.create()
						w.narrate.Event("worker", "the cache has no child: create number %d",
							pods.children)
						if tc.patient {
							writes.Wrote(key, version)
						}
					}
					return Result{}, nil
				}
				w.run()
				w.change("owner")
				w.change("owner") // before the cache has seen the child
				pods.catchUp()
				w.narrate.Event("store", "the cache has %d children", pods.cachedChildren)
				w.change("owner") // the event of the child
				w.after(time.Minute)
				assert.Equal(t, tc.want, pods.children)
				assert.Empty(t, writes.newest)
			})
		})
	}
}

func TestWrites(t *testing.T) {
	var w Writes[string]
	assert.True(t, w.Seen("a", ""), "nothing was written")

	w.Wrote("a", "9")
	w.Wrote("a", "10")
	w.Wrote("a", "8") // an answer that was overtaken
	assert.False(t, w.Seen("a", ""))
	assert.False(t, w.Seen("a", "9"))
	assert.True(t, w.Seen("b", "9"), "another key")
	assert.True(t, w.Seen("a", "10"))
	assert.True(t, w.Seen("a", "9"), "it was seen once")

	w.Wrote("a", "10")
	w.Forget("a")
	assert.True(t, w.Seen("a", "9"))

	w.Wrote("a", "10")
	assert.True(t, w.Seen("a", "not a version"))

	for _, bad := range []string{"", "0", "x", "-1", "01"} {
		w.Wrote("a", bad)
		assert.True(t, w.Seen("a", ""), "Wrote of %q is ignored", bad)
	}
}

func TestWrites_StaleCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		copyAt := func(uid, name, version string) metav1.Object {
			return &metav1.ObjectMeta{UID: types.UID(uid), Namespace: "ns", Name: name,
				ResourceVersion: version}
		}
		var w Writes[string]
		assert.False(t, w.Stale(copyAt("1", "a", "9")), "nothing was refused")

		w.Conflicted(copyAt("1", "a", "9"))
		w.Conflicted(copyAt("1", "a", "8")) // an answer that was overtaken
		assert.True(t, w.Stale(copyAt("1", "a", "9")))
		assert.True(t, w.Stale(copyAt("1", "a", "8")), "an older one, from a stale relist")
		assert.False(t, w.Stale(copyAt("1", "b", "9")), "another object")
		assert.False(t, w.Stale(copyAt("2", "a", "9")), "a successor")
		assert.True(t, w.Stale(copyAt("1", "a", "9")))
		assert.False(t, w.Stale(copyAt("1", "a", "10")))
		assert.True(t, w.Stale(copyAt("1", "a", "9")), "a slow reconcile still has it")

		w.Conflicted(copyAt("1", "a", "x"))
		assert.True(t, w.Stale(copyAt("1", "a", "x")), "versions that have no order")
		assert.False(t, w.Stale(copyAt("1", "a", "y")))

		// Refusals end, those that are never asked for too.
		w.Conflicted(copyAt("1", "a", "11"))
		w.Conflicted(copyAt("2", "b", "12"))
		time.Sleep(conflictWait - 1)
		assert.True(t, w.Stale(copyAt("1", "a", "11")))
		time.Sleep(time.Nanosecond)
		assert.False(t, w.Stale(copyAt("1", "a", "11")))
		w.Conflicted(copyAt("3", "c", "13"))
		assert.Len(t, w.copies.objects, 1)
	})
}

// A refusal is remembered for a minute, even if that of a newer copy of the object is known: it
// lasts on, unless its minute is over.
func TestWrites_AnOlderCopyIsRefusedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		copyAt := func(version string) metav1.Object {
			return &metav1.ObjectMeta{UID: "1", Name: "a", ResourceVersion: version}
		}
		for _, between := range []time.Duration{conflictWait / 2, conflictWait} {
			var w Writes[string]
			w.Conflicted(copyAt("9"))
			w.copies.swept = time.Now().Add(time.Hour) // no sweep meanwhile
			time.Sleep(between)
			w.Conflicted(copyAt("8")) // from a cache that has gone back
			time.Sleep(conflictWait - 1)
			assert.True(t, w.Stale(copyAt("8")), between)
			assert.Equal(t, between < conflictWait, w.Stale(copyAt("9")), between)
			time.Sleep(time.Nanosecond)
			assert.False(t, w.Stale(copyAt("8")), between)
		}
	})
}

// The writes of a key are forgotten an hour after the last call that asked for them. A key that is
// asked for again and again waits as long as the cache needs.
func TestWrites_WhatIsNotAskedForIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var writes Writes[int]
		for key := range 1000 {
			writes.Wrote(key, "7")
		}
		for range 10 * int(unasked/time.Minute) {
			time.Sleep(time.Minute)
			assert.False(t, writes.Seen(0, "6"))
			writes.Wrote(-1, "8")
			assert.False(t, writes.Seen(-1, "7"))
		}
		assert.Len(t, writes.newest, 2)
		assert.True(t, writes.Seen(0, "7"))
		assert.True(t, writes.Seen(1, "6"))
	})
}
