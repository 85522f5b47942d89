// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 what client-go deprecates is compared with ours

package resourcelock

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clientgo "k8s.io/client-go/tools/leaderelection/resourcelock"

	"example.com/informerstack/apitest"
)

// pair returns a MultiLock, the lock of a candidate before the migration, and that of one after it.
func (w *world) pair(identity string) (both, old, young Interface) {
	return w.lock(EndpointsLeasesResourceLock, identity), w.lock(EndpointsResourceLock, identity),
		w.lock(LeasesResourceLock, identity)
}

// The primary is written first: an old candidate is in the way of the pair, and the secondary stays
// as it is.
func TestMultiLock_PrimaryFirst(t *testing.T) {
	bubble(t, func(w *world) {
		both, _, _ := w.pair("a")
		w.create(both, "a", 0)
		var order []string
		for _, r := range w.s.Requests(apitest.Match{}) {
			order = append(order, r.Verb+" "+r.Resource)
		}
		assert.Equal(w, []string{"create endpoints", "create leases"}, order)

		w.failNext("endpoints")
		w.s.ForgetRequests()
		assert.Error(w, both.Update(w.ctx, heldBy("a", 0)))
		assert.Empty(w, w.s.Requests(apitest.Match{Resource: "leases"}))
	})
}

// failNext makes the next request for a resource fail.
func (w *world) failNext(resource string) {
	w.s.Faults().Fail(1, apitest.Match{Resource: resource},
		apierrors.NewInternalError(assert.AnError))
}

// A leader knows a write by its time. Get reports it once both halves have it.
func TestMultiLock_HalfAWriteIsNotShown(t *testing.T) {
	bubble(t, func(w *world) {
		both, _, _ := w.pair("a")
		first := heldBy("a", 0)
		require.NoError(w, both.Create(w.ctx, first))
		second := first
		second.RenewTime.Time = first.RenewTime.Add(2 * time.Second)
		w.failNext("leases")
		require.Error(w, both.Update(w.ctx, second))
		for _, want := range []LeaderElectionRecord{first, second} {
			record, _ := w.get(both)
			assert.True(w, want.RenewTime.Equal(&record.RenewTime), record.RenewTime)
			require.NoError(w, both.Update(w.ctx, second))
		}
	})
}

// An old candidate leads without a Lease: it is the holder. The next leader makes the Lease.
func TestMultiLock_TheOldOnesLease(t *testing.T) {
	bubble(t, func(w *world) {
		_, old, _ := w.pair("old")
		both, _, young := w.pair("a")
		w.create(old, "old", 0)
		record, raw := w.get(both)
		assert.Equal(w, "old", record.HolderIdentity)
		w.update(old, "old", 0)
		_, renewed := w.get(both)
		assert.NotEqual(w, raw, renewed, "it is alive")
		w.update(both, "a", 1)
		w.holder(young, "a")
	})
}

// M1: two halves that differ have no known holder. Both count: the bytes change with either.
func TestMultiLock_UnknownLeader(t *testing.T) {
	bubble(t, func(w *world) {
		both, _, _ := w.pair("a")
		_, old, young := w.pair("b")
		w.create(both, "a", 0)
		w.get(old)
		w.update(old, "b", 1)
		record, raw := w.get(both)
		assert.Equal(w, UnknownLeader, record.HolderIdentity)
		w.get(young)
		w.update(young, "c", 1)
		_, changed := w.get(both)
		assert.NotEqual(w, raw, changed)
	})
}

// The holder makes a half again that was deleted. If it has not seen that, the server refuses the
// write, and it reads first, as an elector does. The other half still names the holder.
func TestMultiLock_AHalfIsMadeAgain(t *testing.T) {
	for _, resource := range kinds[EndpointsLeasesResourceLock] {
		for _, seen := range []bool{false, true} {
			bubble(t, func(w *world) {
				both, old, young := w.pair("a")
				w.create(both, "a", 7)
				objects, err := w.s.List(resource, "kube-system")
				require.NoError(w, err)
				require.NoError(w, w.s.Delete(&objects[0]))
				if !seen {
					err := both.Update(w.ctx, heldBy("a", 7))
					require.True(w, apierrors.IsConflict(err), "%s: %v", resource, err)
				}
				record, _ := w.get(both)
				assert.Equal(w, "a", record.HolderIdentity, "%s, seen: %t", resource, seen)
				assert.Equal(w, 7, record.LeaderTransitions)
				w.update(both, "a", 7)
				w.holder(old, "a")
				w.holder(young, "a")
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
		bubble(t, func(w *world) {
			both, old, young := w.pair("x")
			require.NoError(w, old.Create(w.ctx, row.old))
			require.NoError(w, young.Create(w.ctx, row.young))
			got, _ := w.get(both)
			got.AcquireTime, got.RenewTime = row.want.AcquireTime, row.want.RenewTime
			assert.Equal(w, row.want, *got)
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

// theirs is client-go's MultiLock of two of our locks.
func theirs(primary, secondary Interface) *clientgo.MultiLock {
	return &clientgo.MultiLock{Primary: clientGos{primary}, Secondary: clientGos{secondary}}
}

// M2: client-go reads the secondary again between the two writes, and so overwrites the candidate
// that has taken it since it decided.
func TestDifference_MultiLockLeavesAnothersSecondary(t *testing.T) {
	bubble(t, func(w *world) {
		both, old, mine := w.pair("a")
		_, _, young := w.pair("new")
		w.create(both, "a", 0)
		w.get(young)
		client := theirs(old, mine)
		_, _, err := client.Get(w.ctx)
		require.NoError(w, err)

		w.update(young, "new", 1)
		assert.True(w, apierrors.IsConflict(both.Update(w.ctx, heldBy("a", 0))))
		w.holder(young, "new")

		w.get(old)
		require.NoError(w, client.Update(w.ctx, clientgo.LeaderElectionRecord(heldBy("a", 0))))
		w.holder(young, "a")
	})
}

// M2: if two candidates find no record, the second to reach the primary gives way. When client-go
// creates, it takes any primary for its own, and leads beside an old candidate.
func TestDifference_MultiLockCreatesOnlyBesideItsOwn(t *testing.T) {
	bubble(t, func(w *world) {
		both, primary, young := w.pair("a")
		_, old, _ := w.pair("old")
		_, _, err := both.Get(w.ctx)
		require.True(w, apierrors.IsNotFound(err))
		w.create(old, "old", 0)
		assert.True(w, apierrors.IsAlreadyExists(both.Create(w.ctx, heldBy("a", 0))))
		_, _, err = young.Get(w.ctx)
		assert.True(w, apierrors.IsNotFound(err), "no Lease was made")

		err = theirs(primary, young).Create(w.ctx, clientgo.LeaderElectionRecord(heldBy("a", 0)))
		assert.NoError(w, err, "client-go")
	})
}

// M1, M3: client-go reads the primary alone: its duration and its transitions, and no lock at all
// if there is no primary.
func TestDifference_MultiLockReadsBothHalves(t *testing.T) {
	bubble(t, func(w *world) {
		both, primary, young := w.pair("a")
		client := theirs(primary, young)
		record := heldBy("new", 5)
		record.LeaseDurationSeconds = 60
		require.NoError(w, young.Create(w.ctx, record))
		w.holder(both, "new")
		_, _, err := client.Get(w.ctx)
		assert.True(w, apierrors.IsNotFound(err), "client-go")

		w.create(primary, "old", 0)
		mine, _ := w.get(both)
		assert.Equal(w, 60, mine.LeaseDurationSeconds)
		assert.Equal(w, 5, mine.LeaderTransitions)
		other, _, err := client.Get(w.ctx)
		require.NoError(w, err)
		assert.Equal(w, 15, other.LeaseDurationSeconds, "client-go")
		assert.Equal(w, 0, other.LeaderTransitions, "client-go")
	})
}
