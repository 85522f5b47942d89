// SPDX-License-Identifier: Apache-2.0

package resourcelock

import (
	"context"
	"encoding/json"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// LeaseLock keeps the record in the spec of a Lease. It is the lock to use.
//
// Source: tools/leaderelection/resourcelock/leaselock.go LeaseLock
type LeaseLock struct {
	// LeaseMeta has the Lease's name and namespace.
	LeaseMeta metav1.ObjectMeta
	// Client reaches the Leases of that namespace.
	Client     Client[coordinationv1.Lease]
	LockConfig ResourceLockConfig
	// Labels are set on the Lease with each write; other labels stay.
	Labels map[string]string

	lease held[coordinationv1.Lease, *coordinationv1.Lease]
}

// Get reads the Lease. The bytes are the record as JSON. Its renewTime has a fraction, so that
// renewals within a second differ.
func (l *LeaseLock) Get(ctx context.Context) (*LeaderElectionRecord, []byte, error) {
	lease, err := l.lease.get(ctx, l.Client, l.LeaseMeta.Name)
	if err != nil {
		return nil, nil, err
	}
	record := LeaseSpecToLeaderElectionRecord(&lease.Spec)
	raw, err := json.Marshal(exactRecord{*record, exactTime(record.RenewTime)})
	if err != nil {
		return nil, nil, fmt.Errorf("encode lease %s: %w", l.Describe(), err)
	}
	return record, raw, nil
}

// Create makes the Lease.
func (l *LeaseLock) Create(ctx context.Context, record LeaderElectionRecord) error {
	return l.lease.create(ctx, l.Client, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Name: l.LeaseMeta.Name, Namespace: l.LeaseMeta.Namespace, Labels: l.Labels,
		},
		Spec: LeaderElectionRecordToLeaseSpec(&record),
	})
}

// Update replaces the spec of the Lease as it was last read or written. It fails if the Lease was
// never read or written.
func (l *LeaseLock) Update(ctx context.Context, record LeaderElectionRecord) error {
	err := l.lease.update(ctx, l.Client, l.Labels, func(lease *coordinationv1.Lease) error {
		lease.Spec = LeaderElectionRecordToLeaseSpec(&record)
		return nil
	})
	if err == errNotRead {
		return fmt.Errorf("lease %w", err)
	}
	return err
}

// RecordEvent records an event of the Lease.
func (l *LeaseLock) RecordEvent(event string) {
	meta := l.LeaseMeta
	if lease := l.lease.load(); lease != nil {
		meta = lease.ObjectMeta
	}
	l.LockConfig.record(&coordinationv1.Lease{
		TypeMeta: metav1.TypeMeta{
			Kind: "Lease", APIVersion: coordinationv1.SchemeGroupVersion.String(),
		},
		ObjectMeta: meta,
	}, event)
}

// Identity returns the candidate's name.
func (l *LeaseLock) Identity() string { return l.LockConfig.Identity }

// Describe returns namespace/name.
func (l *LeaseLock) Describe() string { return l.LeaseMeta.Namespace + "/" + l.LeaseMeta.Name }

// UID returns the UID of the Lease as it was last read or written.
func (l *LeaseLock) UID() types.UID { return l.lease.uid() }

// LeaseSpecToLeaderElectionRecord returns the record in spec, with zero values for absent fields.
func LeaseSpecToLeaderElectionRecord(spec *coordinationv1.LeaseSpec) *LeaderElectionRecord {
	record := &LeaderElectionRecord{
		HolderIdentity:       orZero(spec.HolderIdentity),
		LeaseDurationSeconds: int(orZero(spec.LeaseDurationSeconds)),
		LeaderTransitions:    int(orZero(spec.LeaseTransitions)),
		Strategy:             orZero(spec.Strategy),
		PreferredHolder:      orZero(spec.PreferredHolder),
	}
	record.AcquireTime.Time = orZero(spec.AcquireTime).Time
	record.RenewTime.Time = orZero(spec.RenewTime).Time
	return record
}

// LeaderElectionRecordToLeaseSpec returns a spec with the fields of record.
func LeaderElectionRecordToLeaseSpec(record *LeaderElectionRecord) coordinationv1.LeaseSpec {
	spec := coordinationv1.LeaseSpec{
		HolderIdentity:       new(record.HolderIdentity),
		LeaseDurationSeconds: new(int32(record.LeaseDurationSeconds)),
		LeaseTransitions:     new(int32(record.LeaderTransitions)),
		AcquireTime:          &metav1.MicroTime{Time: record.AcquireTime.Time},
		RenewTime:            &metav1.MicroTime{Time: record.RenewTime.Time},
	}
	if record.Strategy != "" {
		spec.Strategy = new(record.Strategy)
	}
	if record.PreferredHolder != "" {
		spec.PreferredHolder = new(record.PreferredHolder)
	}
	return spec
}

func orZero[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}
