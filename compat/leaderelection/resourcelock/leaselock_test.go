// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 deprecated names of client-go are compared with ours

package resourcelock_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	reference "k8s.io/client-go/tools/leaderelection/resourcelock"

	"example.com/informerstack/compat/adapt"
	"example.com/informerstack/compat/leaderelection/resourcelock"
	core "example.com/informerstack/leaderelection/resourcelock"
)

var (
	_ resourcelock.Interface = (*resourcelock.LeaseLock)(nil)
	_ core.Identified        = (*resourcelock.LeaseLock)(nil)
)

// lock is one of the two LeaseLocks as client-go's interface, with its fields.
type lock struct {
	reference.Interface
	labels   *map[string]string
	recorder *reference.EventRecorder
}

// locks runs test with each of the two.
func locks(t *testing.T, test func(t *testing.T, l lock, client kubernetes.Interface)) {
	t.Run("impl=ours", func(t *testing.T) {
		client := fake.NewClientset()
		l := leaseLock(client, "lock", "a")
		test(t, lock{adapt.Lock(l), &l.Labels,
			(*reference.EventRecorder)(&l.LockConfig.EventRecorder)}, client)
	})
	t.Run("impl=client-go", func(t *testing.T) {
		client := fake.NewClientset()
		l := &reference.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: "kube-system", Name: "lock"},
			Client:     client.CoordinationV1(),
			LockConfig: reference.ResourceLockConfig{Identity: "a"},
		}
		test(t, lock{l, &l.Labels, &l.LockConfig.EventRecorder}, client)
	})
}

func leaseLock(client kubernetes.Interface, name, identity string) *resourcelock.LeaseLock {
	return &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: "kube-system", Name: name},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
	}
}

// recorder records events.
type recorder struct{ events []string }

func (r *recorder) Eventf(obj runtime.Object, eventType, reason, message string, args ...any) {
	lease := obj.(*coordinationv1.Lease)
	r.events = append(r.events, eventType+" "+reason+" "+lease.APIVersion+" "+lease.Kind+" "+
		lease.Namespace+"/"+lease.Name+": "+args[0].(string))
}

// record is a's, renewed a whole number of seconds ago.
func record() reference.LeaderElectionRecord {
	at := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local))
	return reference.LeaderElectionRecord{
		HolderIdentity: "a", LeaseDurationSeconds: 15, AcquireTime: at, RenewTime: at,
		LeaderTransitions: 3,
		Strategy:          coordinationv1.OldestEmulationVersion, PreferredHolder: "b",
	}
}

func leaseOn(t *testing.T, client kubernetes.Interface) *coordinationv1.Lease {
	lease, err := client.CoordinationV1().Leases("kube-system").Get(t.Context(), "lock",
		metav1.GetOptions{})
	require.NoError(t, err)
	return lease
}

func relabel(t *testing.T, client kubernetes.Interface, labels map[string]string) {
	lease := leaseOn(t, client)
	lease.Labels = labels
	_, err := client.CoordinationV1().Leases("kube-system").Update(t.Context(), lease,
		metav1.UpdateOptions{})
	require.NoError(t, err)
}

func TestLeaseLock(t *testing.T) {
	locks(t, func(t *testing.T, l lock, client kubernetes.Interface) {
		assert.Equal(t, "kube-system/lock", l.Describe())
		assert.Equal(t, "a", l.Identity())
		_, _, err := l.Get(t.Context())
		assert.True(t, apierrors.IsNotFound(err))
		assert.EqualError(t, l.Update(t.Context(), record()),
			"lease not initialized, call get or create first")

		require.NoError(t, l.Create(t.Context(), record()))
		assert.True(t, apierrors.IsAlreadyExists(l.Create(t.Context(), record())))
		got, raw, err := l.Get(t.Context())
		require.NoError(t, err)
		assert.Equal(t, record(), *got)
		var decoded reference.LeaderElectionRecord
		require.NoError(t, json.Unmarshal(raw, &decoded))
		assert.Equal(t, record(), decoded, "the bytes are the record's")

		renewed := record()
		renewed.RenewTime.Time = renewed.RenewTime.Add(time.Second)
		require.NoError(t, l.Update(t.Context(), renewed))
		got, changed, err := l.Get(t.Context())
		require.NoError(t, err)
		assert.Equal(t, renewed, *got)
		assert.NotEqual(t, raw, changed)
	})
}

// The labels of the lock are added to the Lease, and its other labels stay. The field may be set at
// any time.
func TestLeaseLock_Labels(t *testing.T) {
	locks(t, func(t *testing.T, l lock, client kubernetes.Interface) {
		require.NoError(t, l.Create(t.Context(), record()))
		assert.Empty(t, leaseOn(t, client).Labels)

		*l.labels = map[string]string{"leader": "a"}
		require.NoError(t, l.Update(t.Context(), record()))
		assert.Equal(t, map[string]string{"leader": "a"}, leaseOn(t, client).Labels,
			"on a Lease that had none")

		relabel(t, client, map[string]string{"leader": "b", "other": "x"})
		_, _, err := l.Get(t.Context())
		require.NoError(t, err)
		require.NoError(t, l.Update(t.Context(), record()))
		assert.Equal(t, map[string]string{"leader": "a", "other": "x"}, leaseOn(t, client).Labels)

		*l.labels = nil
		relabel(t, client, map[string]string{"leader": "b"})
		_, _, err = l.Get(t.Context())
		require.NoError(t, err)
		require.NoError(t, l.Update(t.Context(), record()))
		assert.Equal(t, map[string]string{"leader": "b"}, leaseOn(t, client).Labels)
	})
}

func TestLeaseLock_RecordEvent(t *testing.T) {
	locks(t, func(t *testing.T, l lock, _ kubernetes.Interface) {
		require.NoError(t, l.Create(t.Context(), record()))
		l.RecordEvent("is dropped")
		r := &recorder{}
		*l.recorder = r
		l.RecordEvent("became leader")
		assert.Equal(t, []string{"Normal LeaderElection coordination.k8s.io/v1 Lease " +
			"kube-system/lock: a became leader"}, r.events)
	})
}

func TestConversions(t *testing.T) {
	want := record()
	spec := reference.LeaderElectionRecordToLeaseSpec(&want)
	ours := resourcelock.LeaderElectionRecord(want)
	assert.Equal(t, spec, resourcelock.LeaderElectionRecordToLeaseSpec(&ours))
	assert.Equal(t, &ours, resourcelock.LeaseSpecToLeaderElectionRecord(&spec))
	assert.Equal(t, []byte("x,y"), resourcelock.ConcatRawRecord([]byte("x"), []byte("y")))
}

// A MultiLock of two Leases: two different holders count as UnknownLeader.
func TestMultiLock(t *testing.T) {
	ctx, client := t.Context(), fake.NewClientset()
	l := &resourcelock.MultiLock{
		Primary: leaseLock(client, "old", "a"), Secondary: leaseLock(client, "new", "a"),
	}
	mine := resourcelock.LeaderElectionRecord(record())
	require.NoError(t, l.Create(ctx, mine))
	got, _, err := l.Get(ctx)
	require.NoError(t, err)
	assert.Equal(t, "a", got.HolderIdentity)
	require.NoError(t, l.Update(ctx, mine))

	other := leaseLock(client, "new", "b")
	_, _, err = other.Get(ctx)
	require.NoError(t, err)
	theirs := mine
	theirs.HolderIdentity = "b"
	require.NoError(t, other.Update(ctx, theirs))
	got, _, err = l.Get(ctx)
	require.NoError(t, err)
	assert.Equal(t, resourcelock.UnknownLeader, got.HolderIdentity)
}
