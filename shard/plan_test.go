// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A member that was stuck and takes a shard receives its share with the next pass, which must not
// wait until something else happens.
func TestArrange_PlansAgainWhenAStuckMemberTakesAShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShards(t, 2)
		member := &membership{shards: s, identity: "a"}
		a := newTenure(s, member, context.Background())
		version := 0
		lease := func(holder string) *coordinationv1.Lease {
			version++
			return &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(version)},
				Spec: coordinationv1.LeaseSpec{
					HolderIdentity:       &holder,
					LeaseDurationSeconds: new(int32(DefaultLeaseDuration / time.Second)),
					AcquireTime:          &metav1.MicroTime{Time: time.Now()},
					RenewTime:            &metav1.MicroTime{Time: time.Now()},
				},
			}
		}
		// pass arranges with the owners of the shards, and reports whether it asks for another one.
		pass := func(owners ...*coordinationv1.Lease) (again bool) {
			v := view{shards: owners, members: map[string]*coordinationv1.Lease{
				s.leases.memberName("c"): lease("c"),
			}}
			v.version = strconv.Itoa(version)
			a.meet(v, time.Now())
			a.arrange(v, time.Now())
			select {
			case <-a.shards.wake:
				return true
			default:
				return false
			}
		}
		mine, free := lease("a"), (*coordinationv1.Lease)(nil)
		assert.False(t, pass(mine, free))
		assert.Equal(t, []string{"a", "c"}, a.plan.targets)
		for range 2 * stuckAfter {
			time.Sleep(DefaultLeaseDuration / 2)
			pass(mine, free) // c renews its Lease, and takes nothing
		}
		assert.False(t, pass(mine, free))
		assert.Equal(t, []string{"a", "a"}, a.plan.targets)

		taken := lease("c")
		assert.True(t, pass(mine, taken))
		assert.False(t, pass(mine, taken))
		assert.Empty(t, a.plan.limits)
		assert.Equal(t, []string{"a", "c"}, a.plan.targets)
	})
}

// A shard that is being acquired counts as this member's newest: if that is one too many, the
// member keeps the older ones.
func TestArrange_CountsWhatIsBeingAcquired(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShards(t, 2)
		a := newTenure(s, &membership{shards: s, identity: "a"},
			context.Background())
		mine := s.leases.given(s.leases.free(0), "a")
		now := time.Now()
		a.shards.slots[1].set(Acquiring, nil, nil)
		a.claims[1].sent = now.Add(time.Second)
		a.shards.peers["g-m-b"] = &peer{
			identity: "b", since: now, duration: time.Minute,
			lease: s.leases.given(s.leases.free(1), "b"),
		}
		a.arrange(view{shards: []*coordinationv1.Lease{mine, nil}}, now)
		assert.Equal(t, []string{"a", "b"}, a.plan.targets)
	})
}

// Other members may act up to the lowest version that one of them has obeyed. A member that only a
// shard's Lease names counts too, and nothing is known about what it has obeyed.
func TestMeet_WhatTheOthersHaveObeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShards(t, 2)
		member := func(identity, seen string) *coordinationv1.Lease {
			return &coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{
					Name: s.leases.memberName(identity), ResourceVersion: "50",
					Annotations: map[string]string{seenAnnotation: seen},
				},
				Spec: coordinationv1.LeaseSpec{HolderIdentity: &identity},
			}
		}
		for range 20 { // in any order of the members
			a := newTenure(s, &membership{shards: s, identity: "a"}, quiet())
			clear(s.peers)
			v := view{
				version: "50", shards: make([]*coordinationv1.Lease, 2),
				members: map[string]*coordinationv1.Lease{},
			}
			meet := func(leases ...*coordinationv1.Lease) {
				for _, lease := range leases {
					v.members[lease.Name] = lease
				}
				a.meet(v, time.Now())
				a.next = time.Now().Add(time.Hour)
			}
			meet(member("a", "3"))
			assert.True(t, a.alone && a.obeyedByAll("40"))
			meet(member("b", "20"), member("c", "30"), member("d", "40"))
			assert.False(t, a.alone)
			assert.True(t, a.obeyedByAll("20"))
			assert.Greater(t, time.Until(a.next), time.Minute)
			assert.False(t, a.obeyedByAll("21"))
			assert.LessOrEqual(t, time.Until(a.next), DefaultRetryPeriod/4, "it looks again soon")
			v.shards[0] = s.leases.given(s.leases.free(0), "e")
			meet()
			assert.False(t, a.obeyedByAll("20"))
			e := a.shards.peers[s.leases.memberName("e")]
			assert.Equal(t, "e", e.identity)
			e.over = true
			meet()
			assert.True(t, a.obeyedByAll("20"))
		}
	})
}

// A member asks once whether another one is over, when it seems to be.
func TestStory_ADeadMemberIsReadOnce(t *testing.T) {
	story(t, 16, func(w *world) {
		a, b := w.pair()
		name, reads := b.leases.memberName(b.Status().Identity), 0
		a.link.setWeather(func(r *http.Request) weather {
			if isReadOf(name)(r) {
				reads++
				return weather{back: DefaultRetryPeriod / 2}
			}
			return weather{}
		})
		b.crash()
		w.process("c") // everything is looked at again
		w.after(DefaultLeaseDuration + DefaultRetryPeriod)
		w.loads(8, 8)
		assert.Equal(t, 1, reads)
	})
}

// The read of the Lease of a dead member fails for some seconds. It is tried again, not too often.
func TestStory_ADeadMemberCannotBeRead(t *testing.T) {
	story(t, 16, func(w *world) {
		a, b := w.pair()
		name, reads := b.leases.memberName(b.Status().Identity), 0
		var first time.Time
		a.link.setWeather(func(r *http.Request) (fate weather) {
			if !isReadOf(name)(r) {
				return fate
			}
			if reads++; reads == 1 {
				first = time.Now()
			}
			if fate.back = 10 * time.Millisecond; time.Since(first) < 5*time.Second {
				fate.code = http.StatusInternalServerError
			}
			return fate
		})
		b.crash()
		w.after(DefaultLeaseDuration + time.Second)
		w.loads(8)
		assert.Equal(t, 1, reads)
		assert.Error(t, a.Status().LastError)
		w.after(4 * DefaultRetryPeriod)
		w.loads(16)
		assert.Equal(t, 4, reads)
	})
}

// A member that takes shards slowly is not stuck. A member that takes no more is stuck, and keeps
// those that it has.
func TestArrange_ASlowMemberIsNotStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShards(t, 8)
		a := newTenure(s, &membership{shards: s, identity: "a"}, quiet())
		v := view{shards: make([]*coordinationv1.Lease, 8)}
		pass := func() {
			a.shards.peers["g-m-c"] = cmp.Or(a.shards.peers["g-m-c"], &peer{
				identity: "c", duration: time.Minute, lease: s.leases.given(s.leases.free(0), "c"),
			})
			a.shards.peers["g-m-c"].since = time.Now() // it renews its Lease
			a.arrange(v, time.Now())
		}
		for taken := range 3 {
			pass()
			time.Sleep(stuckAfter*DefaultLeaseDuration - time.Second)
			pass()
			assert.Empty(t, a.plan.limits, "it has taken %d", taken)
			next := slices.Index(a.plan.targets, "c")
			for v.shards[next] != nil {
				next += 1 + slices.Index(a.plan.targets[next+1:], "c")
			}
			v.shards[next] = s.leases.given(s.leases.free(Shard(next)), "c")
		}
		pass()
		time.Sleep(stuckAfter * DefaultLeaseDuration)
		pass()
		pass()
		assert.Equal(t, map[string]limit{"c": {3, true}}, a.plan.limits)
	})
}
