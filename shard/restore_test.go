// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/apitest"
)

// restoredUIDs are the UIDs of Leases that were restored. The test server gives them new ones, and
// processes see the old ones.
type restoredUIDs struct {
	mu    sync.Mutex
	pairs []string // the new one of each, and the old one
}

func (r *restoredUIDs) translated(data []byte, sent bool) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.pairs) == 0 {
		return data
	}
	pairs := r.pairs
	if sent {
		pairs = slices.Clone(pairs)
		slices.Reverse(pairs)
	}
	return []byte(strings.NewReplacer(pairs...).Replace(string(data)))
}

// backup returns the Leases as they are now.
func (w *world) backup() (saved []*coordinationv1.Lease) {
	all, err := w.server.List("leases", "default")
	require.NoError(w.t, err)
	for _, u := range all {
		lease := leaseNamed(u.GetName())
		require.NoError(w.t, w.server.Get(lease))
		saved = append(saved, lease)
	}
	return saved
}

// restore replaces the server by one with the Leases of a backup. Its versions are lower than those
// that were seen.
func (w *world) restore(saved []*coordinationv1.Lease) { w.restoreAt(saved, 0) }

// restoreAt is restore, and the server has that many versions after those of the Leases.
func (w *world) restoreAt(saved []*coordinationv1.Lease, higher int) {
	w.event("server", "it is restored from a copy")
	next := apitest.NewServer(apitest.Options{CompactInterval: -1})
	var pairs []string
	for _, lease := range saved {
		again := lease.DeepCopy()
		again.ResourceVersion, again.UID = "", ""
		require.NoError(w.t, next.Create(again))
		old := w.restored.translated([]byte(lease.UID), false)
		pairs = append(pairs, string(again.UID), string(old))
	}
	age(w.t, next, higher)
	w.mu.Lock()
	w.replaced = append(w.replaced, w.server)
	w.server = next
	w.mu.Unlock()
	w.restored.mu.Lock()
	w.restored.pairs = pairs
	w.restored.mu.Unlock()
	for _, p := range w.processes {
		p.link.endWatches()
	}
	w.settle()
}

// The server is restored from a copy of a minute ago. The Leases are old, and versions are
// low. No two members act for a shard, and soon all shards have owners again, also those of a
// member that dies then.
func TestStory_TheServerIsRestored(t *testing.T) {
	story(t, 16, func(w *world) {
		a := w.process("a")
		b := w.process("b")
		w.after(5 * time.Second)
		saved := w.backup()
		c := w.process("c")
		w.after(time.Minute)
		w.loads(6, 5, 5)
		w.restore(saved)
		w.after(DefaultLeaseDuration + 4*DefaultRetryPeriod)
		w.after(2 * DefaultLeaseDuration)
		for _, p := range w.processes {
			assert.GreaterOrEqual(t, len(p.owns()), 5)
		}
		assert.Equal(t, 2, a.Status().Terms)
		b.crash()
		w.after(DefaultLeaseDuration + 2*DefaultRetryPeriod)
		assert.Len(t, slices.Concat(a.owns(), c.owns()), 16)
	})
}

// The server is restored, and its version is higher than before: etcd's --bump-revision does that.
// So only the Leases themselves are older. A member that had given up shards after the backup is
// their owner in the copy. It does not act for them, because their present owner does so until its
// next renewal.
func TestStory_ARestoreWithAHigherVersion(t *testing.T) {
	story(t, 16, func(w *world) {
		first := w.process("first")
		w.after(time.Second)
		first.stop()
		a := w.process("a")
		w.after(5 * time.Second)
		saved := w.backup()
		b := w.process("b")
		w.after(time.Minute)
		w.loads(8, 8)
		a.link.setWeather(func(r *http.Request) weather {
			if r.Method == http.MethodPut && strings.Contains(r.URL.Path, "group-m-") {
				return weather{there: DefaultRetryPeriod}
			}
			return weather{back: time.Millisecond}
		})
		b.link.setWeather(func(*http.Request) weather {
			return weather{back: 2 * DefaultRetryPeriod}
		})
		w.restoreAt(saved, 1000)
		w.after(2 * DefaultRetryPeriod)
		assert.Empty(t, a.owns(), "it has noticed")
		assert.Equal(t, 16, a.Status().Moves[MoveAcquired])
		a.link.setWeather(nil)
		b.link.setWeather(nil)
		w.after(4 * DefaultLeaseDuration)
		assert.Len(t, slices.Concat(a.owns(), b.owns()), 16)
	})
}

// A member that notices a restore in what its informer shows, before its next renewal, joins again
// after one LeaseDuration, even if its own Lease is not in the copy.
func TestStory_AMemberIsBackAfterARestore(t *testing.T) {
	story(t, 16, func(w *world) {
		w.process("a")
		w.after(5 * time.Second)
		saved := w.backup()
		b := w.process("b")
		w.after(time.Minute)
		b.link.setWeather(func(r *http.Request) weather {
			return weather{fails: r.URL.Query().Get("labelSelector") == ""}
		})
		w.restore(saved)
		w.after(3 * DefaultRetryPeriod)
		assert.Empty(t, b.owns())
		b.link.setWeather(nil)
		w.after(DefaultLeaseDuration + DefaultRetryPeriod)
		assert.Equal(t, 2, b.Status().Terms)
	})
}

// cutOffDuringARestore restores the server of two members while b is cut off.
func (w *world) cutOffDuringARestore() (a, b *process) {
	a, b = w.process("a"), w.process("b")
	w.after(5 * time.Second)
	saved := w.backup()
	w.after(DefaultLeaseDuration)
	b.cutOff(true)
	w.restore(saved)
	w.after(4 * DefaultLeaseDuration)
	return a, b
}

// sameOwners checks that b knows the same owners of shards as a.
func (w *world) sameOwners(a, b *process) {
	w.t.Helper()
	for s, theirs := range a.Status().Shards {
		assert.Equal(w.t, theirs.Owner, b.Status().Shards[s].Owner, "shard %d", s)
	}
}

// A member is cut off while the server is restored from a copy, until the versions of the new
// history are higher than those that it knows. So its watch continues without an error, and misses
// the moves of shards before that version. It has its share soon all the same, and knows every
// owner.
func TestStory_CutOffDuringARestore(t *testing.T) {
	story(t, 16, func(w *world) {
		a, b := w.cutOffDuringARestore()
		w.process("c")
		w.after(5 * time.Minute)
		b.cutOff(false)
		w.after(4 * DefaultLeaseDuration)
		assert.Len(t, b.owns(), 5)
		w.sameOwners(a, b)
	})
}

// A member that the copy does not know dies, and another one that is cut off sees nothing of that.
// When it is back, it does not take the dead one for a member, although its watch could continue.
func TestStory_AMemberIsNotInTheCopy(t *testing.T) {
	story(t, 1, func(w *world) {
		a, b := w.process("a"), w.process("b")
		w.after(5 * time.Second)
		saved := w.backup()
		c := w.process("c") // like b, it has no shard
		w.after(DefaultLeaseDuration)
		b.cutOff(true)
		c.crash()
		w.restore(saved)
		w.after(5 * time.Minute)
		b.cutOff(false)
		w.after(4 * DefaultLeaseDuration)
		for _, p := range []*process{a, b} {
			assert.Len(t, p.Status().Members, 2, p.name)
		}
		w.sameOwners(a, b)
	})
}

// age makes the versions of the server higher.
func age(t testing.TB, server *apitest.Server, versions int) {
	t.Helper()
	for range versions / 2 {
		other := leaseNamed("other")
		require.NoError(t, server.Create(other))
		require.NoError(t, server.Delete(other))
	}
}

// The same, and the Leases of the new history have lower versions than those that the member knows.
func TestStory_CutOffDuringARestoreOfLowVersions(t *testing.T) {
	story(t, 16, func(w *world) {
		age(t, w.server, 400)
		a, b := w.cutOffDuringARestore()
		age(t, w.server, 600)
		b.cutOff(false)
		w.after(4 * DefaultLeaseDuration)
		assert.Equal(t, 16, len(a.owns())+len(b.owns()))
		w.sameOwners(a, b)
		w.after(4 * time.Minute) // b may have counted as stuck
		w.loads(8, 8)
	})
}

// A member dies, and the server is restored from a copy in which the member's Lease is older than
// others have seen it. They take its shards all the same.
func TestStory_ADeadMemberInACopy(t *testing.T) {
	story(t, 16, func(w *world) {
		a := w.process("a")
		b := w.process("b")
		w.after(5 * time.Second)
		saved := w.backup()
		w.after(time.Minute)
		b.crash()
		w.restore(saved)
		w.after(3*DefaultLeaseDuration + 4*DefaultRetryPeriod)
		assert.Len(t, a.owns(), 16)
	})
}

// A version that a member has seen before the server was restored says nothing about those that
// came afterwards.
func TestPeer_SeenBeforeARestore(t *testing.T) {
	p := &peer{lease: &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "100", Annotations: map[string]string{seenAnnotation: "99"},
	}}}
	assert.Equal(t, "99", p.seen())
	p.lease.Annotations[seenAnnotation] = "101"
	assert.Empty(t, p.seen())
}

// The informer may lag behind a read, or not show a Lease at all: that alone is nothing new.
func TestPeer_TheInformerLags(t *testing.T) {
	now := time.Now()
	version := func(v string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{ResourceVersion: v},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: new("b_1")}}
	}
	p := &peer{duration: time.Minute, least: time.Minute}
	assert.True(t, p.list(version("3"), now))
	p.confirm(version("5"), now, now)
	for range 3 {
		now = now.Add(time.Minute)
		assert.False(t, p.list(version("3"), now))
	}
	p.confirm(version("5"), now, now)
	assert.True(t, p.over)

	p = &peer{duration: time.Minute, least: time.Minute}
	p.confirm(version("5"), now, now)
	assert.False(t, p.list(nil, now))
	assert.NotNil(t, p.lease)
}

// A member without a Lease, which only a shard's Lease names, is over when its Lease was missing
// for its duration.
func TestPeer_WithoutLease(t *testing.T) {
	now := time.Now()
	p := &peer{identity: "b_1", duration: time.Minute, least: time.Minute}
	assert.True(t, p.list(nil, now))
	assert.Equal(t, now.Add(time.Minute), p.expiry())
	now = now.Add(time.Minute - 1)
	assert.False(t, p.list(nil, now))
	p.confirm(nil, now, now)
	assert.False(t, p.over)
	now = now.Add(1)
	p.confirm(nil, now, now)
	assert.True(t, p.over)
}

// The server is restored from a copy while a member gives up its shards. Until its watch ends, it
// sees Leases that the server does not have. It does not read them again and again.
func TestStory_LeavingDuringARestore(t *testing.T) {
	story(t, 2, func(w *world) {
		first := w.process("first")
		w.after(time.Second)
		first.stop()
		w.after(time.Second)
		saved := w.backup() // of free shards
		a := w.process("a")
		w.after(time.Second)
		w.loads(2)
		a.link.setWeather(func(r *http.Request) weather {
			if strings.Contains(r.URL.RawQuery, "labelSelector=") {
				return weather{back: time.Minute}
			}
			return weather{back: time.Millisecond}
		})
		w.restore(saved)
		before := a.link.reads
		a.stop()
		w.after(DefaultRetryPeriod)
		assert.Less(t, a.link.reads-before, 40)
		w.after(time.Minute)
		assert.True(t, a.returned())
	})
}
