// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 what client-go deprecates is compared with ours

package resourcelock

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	clientgo "k8s.io/client-go/tools/leaderelection/resourcelock"

	"example.com/informerstack/apitest"
)

// pair returns a MultiLock, the lock of a candidate before the migration, and that of one after it.
func pair(t *testing.T, config *rest.Config, identity string) (both, old, young Interface) {
	return lockOf(t, EndpointsLeasesResourceLock, identity, config),
		lockOf(
			t,
			EndpointsResourceLock,
			identity,
			config,
		), lockOf(t, LeasesResourceLock, identity, config)
}

// The primary is written first: an old candidate is in the way of the pair, and the secondary stays
// as it is.
func TestMultiLock_PrimaryFirst(t *testing.T) {
	bubble(t, func(t *testing.T, s *apitest.Server, config *rest.Config) {
		ctx := t.Context()
		both, _, _ := pair(t, config, "a")
		require.NoError(t, both.Create(ctx, heldBy("a", 0)))
		var order []string
		for _, r := range s.Requests(apitest.Match{}) {
			order = append(order, r.Verb+" "+r.Resource)
		}
		assert.Equal(t, []string{"create endpoints", "create leases"}, order)

		s.Faults().
			Fail(
				1, apitest.Match{Resource: "endpoints"}, apierrors.NewInternalError(assert.AnError),
			)
		s.ForgetRequests()
		assert.Error(t, both.Update(ctx, heldBy("a", 0)))
		assert.Empty(t, s.Requests(apitest.Match{Resource: "leases"}))
	})
}

// A leader knows a write by its time. Get reports it once both halves have it.
func TestMultiLock_HalfAWriteIsNotShown(t *testing.T) {
	bubble(t, func(t *testing.T, s *apitest.Server, config *rest.Config) {
		ctx := t.Context()
		both, _, _ := pair(t, config, "a")
		first := heldBy("a", 0)
		require.NoError(t, both.Create(ctx, first))
		second := first
		second.RenewTime.Time = first.RenewTime.Add(2 * time.Second)
		s.Faults().Fail(
			1, apitest.Match{Resource: "leases"}, apierrors.NewInternalError(assert.AnError),
		)
		require.Error(t, both.Update(ctx, second))
		for _, want := range []LeaderElectionRecord{first, second} {
			record, _, err := both.Get(ctx)
			require.NoError(t, err)
			assert.True(t, want.RenewTime.Equal(&record.RenewTime), record.RenewTime)
			require.NoError(t, both.Update(ctx, second))
		}
	})
}

// An old candidate leads without a Lease: it is the holder. The next leader makes the Lease.
func TestMultiLock_TheOldOnesLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *apitest.Server, config *rest.Config) {
		ctx := t.Context()
		_, old, _ := pair(t, config, "old")
		both, _, young := pair(t, config, "a")
		require.NoError(t, old.Create(ctx, heldBy("old", 0)))
		record, raw, err := both.Get(ctx)
		require.NoError(t, err)
		assert.Equal(t, "old", record.HolderIdentity)
		require.NoError(t, old.Update(ctx, heldBy("old", 0)))
		_, renewed, err := both.Get(ctx)
		require.NoError(t, err)
		assert.NotEqual(t, raw, renewed, "it is alive")
		require.NoError(t, both.Update(ctx, heldBy("a", 1)))
		record, _, err = young.Get(ctx)
		require.NoError(t, err)
		assert.Equal(t, "a", record.HolderIdentity)
	})
}

// M1: two halves that differ have no known holder. Both count: the bytes change with either.
func TestMultiLock_UnknownLeader(t *testing.T) {
	bubble(t, func(t *testing.T, s *apitest.Server, config *rest.Config) {
		ctx := t.Context()
		both, _, _ := pair(t, config, "a")
		_, old, young := pair(t, config, "b")
		require.NoError(t, both.Create(ctx, heldBy("a", 0)))
		_, _, err := old.Get(ctx)
		require.NoError(t, err)
		require.NoError(t, old.Update(ctx, heldBy("b", 1)))
		record, raw, err := both.Get(ctx)
		require.NoError(t, err)
		assert.Equal(t, UnknownLeader, record.HolderIdentity)
		_, _, err = young.Get(ctx)
		require.NoError(t, err)
		require.NoError(t, young.Update(ctx, heldBy("c", 1)))
		_, changed, err := both.Get(ctx)
		require.NoError(t, err)
		assert.NotEqual(t, raw, changed)
	})
}

// The holder makes a half again that was deleted. If it has not seen that, the server refuses the
// write, and it reads first, as an elector does. The other half still names the holder.
func TestMultiLock_AHalfIsMadeAgain(t *testing.T) {
	for _, resource := range []string{"endpoints", "leases.coordination.k8s.io"} {
		for _, seen := range []bool{false, true} {
			t.Run(fmt.Sprint(resource, seen), func(t *testing.T) {
				bubble(t, func(t *testing.T, s *apitest.Server, config *rest.Config) {
					ctx := t.Context()
					both, old, young := pair(t, config, "a")
					require.NoError(t, both.Create(ctx, heldBy("a", 7)))
					objects, err := s.List(resource, "kube-system")
					require.NoError(t, err)
					require.NoError(t, s.Delete(&objects[0]))
					if !seen {
						err := both.Update(ctx, heldBy("a", 7))
						require.True(t, apierrors.IsConflict(err), "%v", err)
					}
					record, _, err := both.Get(ctx)
					require.NoError(t, err)
					assert.Equal(t, "a", record.HolderIdentity)
					assert.Equal(t, 7, record.LeaderTransitions)
					require.NoError(t, both.Update(ctx, heldBy("a", 7)))
					for _, half := range []Interface{old, young} {
						record, _, err := half.Get(ctx)
						require.NoError(t, err)
						assert.Equal(t, "a", record.HolderIdentity)
					}
				})
			})
		}
	}
}

// M1, M3: what two halves say together.
func TestMultiLock_TwoHalves(t *testing.T) {
	half := func(holder string, seconds, transitions int) LeaderElectionRecord {
		return LeaderElectionRecord{HolderIdentity: holder, LeaseDurationSeconds: seconds,
			LeaderTransitions: transitions}
	}
	for _, row := range []struct{ old, young, want LeaderElectionRecord }{
		{half("a", 15, 3), half("a", 15, 3), half("a", 15, 3)},
		{half("a", 15, 3), half("b", 60, 5), half(UnknownLeader, 60, 5)},
		{half("a", 60, 5), half("b", 15, 3), half(UnknownLeader, 60, 5)},
		{half("", 1, 3), half("b", 15, 3), half("b", 15, 4)},
		{half("", 1, 2), half("b", 15, 3), half("b", 15, 3)},
		{half("", 1, 4), half("b", 15, 3), half("b", 15, 5)},
		{half("a", 15, 3), half("", 1, 4), half("a", 15, 5)},
		{half("", 1, 3), half("", 1, 4), half("", 1, 4)},
		{half("", 1, 4), half("", 1, 4), half("", 1, 4)},
	} {
		bubble(t, func(t *testing.T, s *apitest.Server, config *rest.Config) {
			ctx := t.Context()
			both, old, young := pair(t, config, "x")
			require.NoError(t, old.Create(ctx, row.old))
			require.NoError(t, young.Create(ctx, row.young))
			got, _, err := both.Get(ctx)
			require.NoError(t, err)
			got.AcquireTime, got.RenewTime = row.want.AcquireTime, row.want.RenewTime
			assert.Equal(t, row.want, *got)
		})
	}
}

// clientGos is one of our locks for client-go's MultiLock.
type clientGos struct{ Interface }

func (l clientGos) Get(ctx context.Context) (*clientgo.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	return (*clientgo.LeaderElectionRecord)(record), raw, err
}

func (l clientGos) Create(ctx context.Context, record clientgo.LeaderElectionRecord) error {
	return l.Interface.Create(ctx, LeaderElectionRecord(record))
}

func (l clientGos) Update(ctx context.Context, record clientgo.LeaderElectionRecord) error {
	return l.Interface.Update(ctx, LeaderElectionRecord(record))
}

// M2: client-go reads the secondary again between the two writes, and so overwrites the candidate
// that has taken it since it decided.
func TestDifference_MultiLockLeavesAnothersSecondary(t *testing.T) {
	bubble(t, func(t *testing.T, s *apitest.Server, config *rest.Config) {
		ctx := t.Context()
		both, old, mine := pair(t, config, "a")
		_, _, young := pair(t, config, "new")
		require.NoError(t, both.Create(ctx, heldBy("a", 0)))
		_, _, err := young.Get(ctx)
		require.NoError(t, err)
		theirs := &clientgo.MultiLock{Primary: clientGos{old}, Secondary: clientGos{mine}}
		_, _, err = theirs.Get(ctx)
		require.NoError(t, err)

		require.NoError(t, young.Update(ctx, heldBy("new", 1)))
		assert.True(t, apierrors.IsConflict(both.Update(ctx, heldBy("a", 0))))
		record, _, err := young.Get(ctx)
		require.NoError(t, err)
		assert.Equal(t, "new", record.HolderIdentity)

		_, _, err = old.Get(ctx)
		require.NoError(t, err)
		require.NoError(t, theirs.Update(ctx, clientgo.LeaderElectionRecord(heldBy("a", 0))))
		record, _, err = young.Get(ctx)
		require.NoError(t, err)
		assert.Equal(t, "a", record.HolderIdentity, "client-go")
	})
}

// M2: if two candidates find no record, the second to reach the primary gives way. When client-go
// creates, it takes any primary for its own, and leads beside an old candidate.
func TestDifference_MultiLockCreatesOnlyBesideItsOwn(t *testing.T) {
	bubble(t, func(t *testing.T, s *apitest.Server, config *rest.Config) {
		ctx := t.Context()
		both, primary, young := pair(t, config, "a")
		_, old, _ := pair(t, config, "old")
		_, _, err := both.Get(ctx)
		require.True(t, apierrors.IsNotFound(err))
		require.NoError(t, old.Create(ctx, heldBy("old", 0)))
		assert.True(t, apierrors.IsAlreadyExists(both.Create(ctx, heldBy("a", 0))))
		_, _, err = young.Get(ctx)
		assert.True(t, apierrors.IsNotFound(err), "no Lease was made")

		theirs := &clientgo.MultiLock{Primary: clientGos{primary}, Secondary: clientGos{young}}
		assert.NoError(
			t,
			theirs.Create(ctx, clientgo.LeaderElectionRecord(heldBy("a", 0))),
			"client-go",
		)
	})
}

// M1, M3: client-go reads the primary alone: its duration and its transitions, and no lock at all
// if there is no primary.
func TestDifference_MultiLockReadsBothHalves(t *testing.T) {
	bubble(t, func(t *testing.T, s *apitest.Server, config *rest.Config) {
		ctx := t.Context()
		both, primary, young := pair(t, config, "a")
		theirs := &clientgo.MultiLock{Primary: clientGos{primary}, Secondary: clientGos{young}}
		record := heldBy("new", 5)
		record.LeaseDurationSeconds = 60
		require.NoError(t, young.Create(ctx, record))
		mine, _, err := both.Get(ctx)
		require.NoError(t, err)
		assert.Equal(t, "new", mine.HolderIdentity)
		_, _, err = theirs.Get(ctx)
		assert.True(t, apierrors.IsNotFound(err), "client-go")

		require.NoError(t, primary.Create(ctx, heldBy("old", 0)))
		mine, _, err = both.Get(ctx)
		require.NoError(t, err)
		assert.Equal(t, 60, mine.LeaseDurationSeconds)
		assert.Equal(t, 5, mine.LeaderTransitions)
		other, _, err := theirs.Get(ctx)
		require.NoError(t, err)
		assert.Equal(t, 15, other.LeaseDurationSeconds, "client-go")
		assert.Equal(t, 0, other.LeaderTransitions, "client-go")
	})
}
