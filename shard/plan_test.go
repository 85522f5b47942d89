// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A member that was stuck and takes a shard receives its share with the next pass, which must not
// wait until something else happens.
func TestArrange_PlansAgainWhenAStuckMemberTakesAShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := New(Config{
			Name: "g", Namespace: "default", Count: 2, Client: restClient(t, newLink(nil)),
		})
		require.NoError(t, err)
		member := &membership{shards: s, identity: "a", limit: unlimited}
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
			case <-a.wake:
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
		s, err := New(Config{
			Name: "g", Namespace: "default", Count: 2, Client: restClient(t, newLink(nil)),
		})
		require.NoError(t, err)
		a := newTenure(s, &membership{shards: s, identity: "a", limit: unlimited},
			context.Background())
		mine := s.leases.given(s.leases.free(0), "a")
		now := time.Now()
		a.slots[1].set(Acquiring, nil, nil)
		a.claims[1].sent = now.Add(time.Second)
		a.peers["g-m-b"] = &peer{
			identity: "b", since: now, duration: time.Minute,
			lease: s.leases.given(s.leases.free(1), "b"),
		}
		a.arrange(view{shards: []*coordinationv1.Lease{mine, nil}}, now)
		assert.Equal(t, []string{"a", "b"}, a.plan.targets)
	})
}
