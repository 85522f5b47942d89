// SPDX-License-Identifier: Apache-2.0

package resourcelock

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"example.com/informerstack/leaderelection/resourcelock"
)

// LeaseLock keeps the record in the spec of a Lease. One goroutine at a time may use it, and may
// set the fields between two calls; Identity and Describe only read them.
//
// Source: tools/leaderelection/resourcelock/leaselock.go LeaseLock
type LeaseLock struct {
	// LeaseMeta has the Lease's name and namespace.
	LeaseMeta  metav1.ObjectMeta
	Client     coordinationv1client.LeasesGetter
	LockConfig ResourceLockConfig
	// Labels are added to the Lease by each write; other labels stay.
	Labels map[string]string

	lock resourcelock.LeaseLock // holds the version that was last read or written
}

// ours returns the underlying lock, with the present values of the fields.
func (l *LeaseLock) ours() *resourcelock.LeaseLock {
	l.lock.LeaseMeta, l.lock.LockConfig, l.lock.Labels = l.LeaseMeta, l.LockConfig, l.Labels
	if l.Client != nil {
		l.lock.Client = l.Client.Leases(l.LeaseMeta.Namespace)
	}
	return &l.lock
}

// Get reads the Lease, and returns the record both decoded and as JSON.
func (l *LeaseLock) Get(ctx context.Context) (*LeaderElectionRecord, []byte, error) {
	return l.ours().Get(ctx)
}

// Create creates the Lease.
func (l *LeaseLock) Create(ctx context.Context, ler LeaderElectionRecord) error {
	return l.ours().Create(ctx, ler)
}

// Update replaces the spec of the Lease as it was last read or written. It fails if the Lease was
// never read or written.
func (l *LeaseLock) Update(ctx context.Context, ler LeaderElectionRecord) error {
	return l.ours().Update(ctx, ler)
}

// RecordEvent records an event of the Lease.
func (l *LeaseLock) RecordEvent(s string) { l.ours().RecordEvent(s) }

// Describe returns namespace/name.
func (l *LeaseLock) Describe() string { return l.LeaseMeta.Namespace + "/" + l.LeaseMeta.Name }

// Identity returns the candidate's name.
func (l *LeaseLock) Identity() string { return l.LockConfig.Identity }

// UID returns the UID of the Lease as it was last read or written. Fencing tokens carry it.
func (l *LeaseLock) UID() types.UID { return l.lock.UID() }

// LeaseSpecToLeaderElectionRecord converts spec to a record, with zero values for absent fields.
func LeaseSpecToLeaderElectionRecord(spec *coordinationv1.LeaseSpec) *LeaderElectionRecord {
	return resourcelock.LeaseSpecToLeaderElectionRecord(spec)
}

// LeaderElectionRecordToLeaseSpec converts ler to a spec.
func LeaderElectionRecordToLeaseSpec(ler *LeaderElectionRecord) coordinationv1.LeaseSpec {
	return resourcelock.LeaderElectionRecordToLeaseSpec(ler)
}
