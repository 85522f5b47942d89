// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
)

// leaseAt is a version of the Lease of the first shard.
func leaseAt(version string) *coordinationv1.Lease {
	lease := leaseNamed("g-0")
	lease.ResourceVersion = version
	return lease
}

// A member knows an answer before its informer does, until the informer has reached its version.
// It remembers since when a shard has had no Lease.
func TestTenure_Look(t *testing.T) {
	s := newShards(t, 1)
	tn := newTenure(s, &membership{shards: s, identity: "a"}, context.Background())
	for _, step := range []struct {
		informer, answer, version string // of the Lease, or ""; and of the list
		want, missing             string
	}{
		{"", "", "10", "", "10"},
		{"", "", "11", "", "10"},
		{"", "12", "11", "12", ""},
		{"12", "", "12", "12", ""},
		{"12", "15", "14", "15", ""},
		{"15", "", "16", "15", ""},
		{"15", "18", "17", "18", ""},
		{"", "", "19", "", "19"}, // it was deleted at 19
		{"20", "", "20", "20", ""},
		{"", "", "21", "", "21"},
	} {
		var list []any
		if step.informer != "" {
			list = append(list, leaseAt(step.informer))
		}
		require.NoError(t, s.lister.GetStore().Replace(list, step.version))
		if step.answer != "" {
			tn.answers[0] = leaseAt(step.answer)
		}
		got := ""
		if shown := tn.look().shards[0]; shown != nil {
			got = shown.ResourceVersion
		}
		assert.Equal(t, step.want, got, "%+v", step)
		assert.Equal(t, step.missing, tn.claims[0].missing, "%+v", step)
	}
	assert.Empty(t, tn.answers)
}

// If the informer shows something older than before, or older than an answer that it should have
// brought, the server was restored, and the member gives up everything at once.
func TestTenure_ARestoreEndsIt(t *testing.T) {
	for _, test := range []struct {
		name, answer, held, list string
		back                     bool
	}{
		{"a newer list", "", "12", "21", false},
		{"the same list", "", "12", "20", false},
		{"an older list", "", "12", "19", true},
		{"an answer that is not there yet", "22", "12", "21", false},
		{"an answer that was missed", "18", "12", "21", true},
		{"an answer that was followed by another one", "18", "19", "21", false},
		{"a Lease that is older than before", "", "9", "21", true},
		{"the same, after an answer that is older still", "8", "9", "21", true},
		{"an answer that was followed by the end of the Lease", "18", "", "21", false},
	} {
		s := newShards(t, 2)
		member := &membership{shards: s, identity: "a"}
		tn := newTenure(s, member, t.Context())
		require.NoError(t, s.lister.GetStore().Replace([]any{leaseAt("10")}, "20"))
		tn.look()
		s.slots[1].set(Acquiring, nil, nil)
		s.slots[1].set(Syncing, newRight(tn.term, tokenOf(leaseAt("1"))), nil)
		if test.answer != "" {
			tn.answers[0] = leaseAt(test.answer)
		}
		var list []any
		if test.held != "" {
			list = append(list, leaseAt(test.held))
		}
		require.NoError(t, s.lister.GetStore().Replace(list, test.list))
		tn.look()
		require.Equal(t, test.back, member.wentBack(), test.name)
		if test.back {
			s.ready.Store(&tn.term)
			assert.False(t, tn.pass(time.Now()), test.name)
			assert.False(t, s.Ready() || s.Status().Joined, test.name)
			assert.ErrorIs(t, tn.failure, errRestored, test.name)
			state, _, _ := s.slots[1].look()
			assert.Equal(t, Elsewhere, state, test.name)
		}
		if test.list == "19" {
			assert.Empty(t, s.obeyed("a"))
			known, _ := s.synced()
			assert.Equal(t, "20", known, "an answer must not be older")
		}
	}
}

// After a write in doubt, the shard is this member's if the Lease is as the member has written it.
// If a person has written the member into it, another owner may not know that yet.
func TestTenure_Took(t *testing.T) {
	tn := &tenure{me: "a"}
	l := newLeases(&Config{Name: "g", Namespace: "default", Count: 1})
	assert.False(t, tn.took(nil))
	assert.False(t, tn.took(l.free(0)))
	assert.False(t, tn.took(l.given(l.free(0), "b")))
	mine := l.given(l.free(0), "a")
	assert.True(t, tn.took(mine))
	assert.False(t, tn.took(l.released(mine)))
	edited := l.given(l.free(0), "b")
	edited.Spec.HolderIdentity = new("a")
	assert.False(t, tn.took(edited))
}

// A person writes a member into the Leases of shards that it is not to own. It gives them back.
func TestStory_AHolderThatIsNotToOwn(t *testing.T) {
	story(t, 4, func(w *world) {
		a, b := w.pair()
		for _, s := range b.owns() { // a has acquired its own ones earlier, and keeps them
			w.editShard(s, setHolder(a.Status().Identity))
		}
		w.after(DefaultLeaseDuration)
		w.loads(2, 2)
	})
}

// A member takes a shard that it has lost again at once, if the shard is free.
func TestStory_ALostShardIsTakenAtOnce(t *testing.T) {
	story(t, 2, func(w *world) {
		a := w.process("a")
		w.after(DefaultLeaseDuration + DefaultRetryPeriod)
		lease := w.lease(1)
		*lease.Spec.LeaseTransitions++
		require.NoError(t, w.server.Update(lease))
		w.settle()
		assert.Equal(t, 1, a.Status().Moves[MoveLost])
		w.loads(2)
		assert.Equal(t, 3, tokenOf(w.lease(1)).Transitions)
	})
}

// A shard that is drained is not released if its owner is to keep it after all. But if the context
// of its reconcile is done by then, the shard is released first.
func TestStory_ADrainedShardIsWantedAgain(t *testing.T) {
	for _, after := range []time.Duration{time.Second, DefaultDrainTimeout + time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			story(t, 2, func(w *world) {
				a := w.process("a")
				busy := w.busy(a, 0, 1)
				b := w.process("b")
				w.after(after)
				w.loads(1, 0)
				b.stop()
				w.after(time.Second)
				ended := after > DefaultDrainTimeout
				if ended {
					assert.Len(t, a.owns(), 1)
				} else {
					assert.Len(t, a.owns(), 2)
					w.after(DefaultDrainTimeout)
				}
				for _, r := range busy {
					r.finish()
				}
				w.after(time.Second)
				assert.Len(t, a.owns(), 2)
				w.loads(2)
				sum := tokenOf(w.lease(0)).Transitions + tokenOf(w.lease(1)).Transitions
				if ended {
					assert.Equal(t, 1+2, sum)
				} else {
					assert.Equal(t, 1+1, sum)
				}
			})
		})
	}
}
