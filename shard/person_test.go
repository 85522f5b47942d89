// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
)

// memberLease reads the Lease of a process's membership.
func (w *world) memberLease(p *process) *coordinationv1.Lease {
	w.t.Helper()
	lease := leaseNamed(p.leases.memberName(p.Status().Identity))
	require.NoError(w.t, w.server.Get(lease))
	return lease
}

// editMember is a person's edit of the Lease of a process's membership.
func (w *world) editMember(p *process, edit func(lease *coordinationv1.Lease)) {
	w.t.Helper()
	lease := w.memberLease(p)
	edit(lease)
	require.NoError(w.t, w.server.Update(lease))
	w.event("server", "a person edits the Lease of %s", p.name)
}

// editShard is a person's edit of the Lease of a shard.
func (w *world) editShard(s Shard, edit func(lease *coordinationv1.Lease)) {
	w.t.Helper()
	lease := w.lease(s)
	edit(lease)
	require.NoError(w.t, w.server.Update(lease))
}

// recreate replaces a Lease by a copy of an earlier version.
func (w *world) recreate(lease *coordinationv1.Lease) {
	w.t.Helper()
	w.deleteLease(lease.Name)
	lease.ResourceVersion, lease.UID = "", ""
	require.NoError(w.t, w.server.Create(lease))
}

func setHolder(identity string) func(lease *coordinationv1.Lease) {
	return func(lease *coordinationv1.Lease) { lease.Spec.HolderIdentity = &identity }
}

func addTransitions(n int32) func(lease *coordinationv1.Lease) {
	return func(lease *coordinationv1.Lease) { *lease.Spec.LeaseTransitions += n }
}

func lowerDuration(lease *coordinationv1.Lease) { lease.Spec.LeaseDurationSeconds = new(int32(1)) }

// lateWatch delays the answers to the watches of a process, and so the events.
func lateWatch(by time.Duration) func(*http.Request) weather {
	return weather{back: by}.of(isWatch)
}

// A person erases the holder of the Lease of a member that is cut off, to make others replace it.
// It acts as long as its term lasts, and is replaced afterwards.
func TestStory_AnErasedMemberIsReplacedAfterItsTerm(t *testing.T) {
	story(t, 16, func(w *world) {
		_, b := w.pair()
		b.cutOff(true)
		w.editMember(b, setHolder(""))
		w.after(3 * time.Second)
		assert.Len(t, b.owns(), 8)
		w.after(DefaultLeaseDuration)
		w.loads(16, 0)
	})
}

// A member that is not cut off notices that its Lease has no holder when it renews it, and joins
// again.
func TestStory_AnErasedMemberJoinsAgain(t *testing.T) {
	story(t, 16, func(w *world) {
		w.process("a")
		b := w.newProcess("b")
		b.link.setWeather(lateWatch(time.Second))
		b.start()
		w.after(5 * time.Second)
		w.loads(8, 8)
		w.editMember(b, setHolder(""))
		w.after(DefaultLeaseDuration + 3*DefaultRetryPeriod)
		w.loads(8, 8)
		assert.Equal(t, 2, b.Status().Terms)
	})
}

// A person lowers the duration in the Lease of a member that is cut off. Its term is no shorter.
func TestStory_ALowerDurationEndsNoTerm(t *testing.T) {
	story(t, 16, func(w *world) {
		_, b := w.pair()
		b.cutOff(true)
		w.editMember(b, lowerDuration)
		w.after(2 * time.Second)
		w.process("c") // everything is looked at again
		w.after(6 * time.Second)
		assert.Len(t, b.owns(), 8)
	})
}

// A person lowers the duration in the Lease of a member while another one leaves. All members still
// know each other afterwards.
func TestStory_ALowerDurationEndsNoMembership(t *testing.T) {
	story(t, 16, func(w *world) {
		a, b, c := w.process("a"), w.process("b"), w.process("c")
		for old := w.memberLease(b); old.ResourceVersion == w.memberLease(b).ResourceVersion; {
			w.after(100 * time.Millisecond)
		} // b has just renewed it
		w.loads(6, 5, 5)
		w.editMember(b, lowerDuration)
		w.after(1100 * time.Millisecond)
		c.stop()
		w.after(DefaultLeaseDuration)
		assert.Len(t, a.Status().Members, 2)
		assert.Len(t, b.Status().Members, 2)
		w.loads(8, 8)
	})
}

// A person writes into a member's Lease that the member has seen a version that is no number. It
// does not count, and the member corrects it.
func TestStory_AVersionThatIsNoNumberWasNotSeen(t *testing.T) {
	story(t, 3, func(w *world) {
		b := w.process("b")
		w.after(time.Second)
		a := w.process("a")
		w.after(2 * time.Second)
		w.loads(2, 1)
		b.link.setWeather(lateWatch(8 * time.Second))
		b.endWatches()
		w.after(10 * time.Second)
		w.editMember(b, func(lease *coordinationv1.Lease) {
			lease.Annotations[seenAnnotation] = "none"
			lease.Annotations["note"] = "kept"
		})
		w.editShard(b.owns()[0], setHolder(a.Status().Identity))
		w.after(10 * time.Second) // b sees that late
		seen := w.memberLease(b).Annotations[seenAnnotation]
		_, ok := number(seen)
		assert.True(t, ok, seen)
		assert.Equal(t, "kept", w.memberLease(b).Annotations["note"])
	})
}

// A person restores the Lease of a free shard from a copy, after the shard has got an owner. The
// copy has the marks of a member, but it is another Lease: the owner does not know of it yet.
func TestStory_ARestoredLeaseOfAShard(t *testing.T) {
	story(t, 3, func(w *world) {
		first := w.process("first")
		w.after(time.Second)
		first.stop()
		w.after(time.Second)
		saved := []*coordinationv1.Lease{w.lease(0), w.lease(1), w.lease(2)} // of free shards
		b := w.process("b")
		w.after(time.Second)
		w.process("a")
		w.after(2 * time.Second)
		b.link.setWeather(lateWatch(5 * time.Second))
		b.endWatches()
		w.after(7 * time.Second)
		w.loads(2, 1)
		w.recreate(saved[b.owns()[0]])
		w.after(15 * time.Second)
		w.loads(1, 2)
	})
}
