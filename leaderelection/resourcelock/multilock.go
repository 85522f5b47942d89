// SPDX-License-Identifier: Apache-2.0

package resourcelock

import (
	"bytes"
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// UnknownLeader is the holder that a MultiLock reports when its two records name different ones.
const UnknownLeader = "leaderelection.k8s.io/unknown"

// MultiLock keeps the record twice, so that candidates can move from one kind of lock to another
// while they run. First all candidates move from the old lock to the MultiLock, then from it to the
// new lock:
//
//	candidates   read
//	old          the primary
//	in between   the primary and the secondary
//	new          the secondary
//
// Every write goes to the primary first, and to the secondary only if that succeeded. A candidate
// leads only if it has written both:
//
//	M1  a half without a holder, or without an object, says nothing: the other half's holder holds
//	    the record. If both have holders and they differ, the holder is UnknownLeader, which is no
//	    candidate's identity
//	M2  a half that names another holder is never written, except in the version
//	    of the record that was seen to expire
//	M3  the record lasts as long as the half that lasts longer, and counts as many transitions as
//	    the half that counts more. If the half without a holder counts no fewer than the other,
//	    another candidate may have led in between: the record counts one more
//
// The tokens of the MultiLock have the primary's UID: they have no order with those of candidates
// that use the new lock alone.
//
// Primary and Secondary must have the same identity.
//
// Source: tools/leaderelection/resourcelock/multilock.go MultiLock
type MultiLock struct {
	Primary   Interface
	Secondary Interface
}

// Get reads both records, and returns their combination by M1 and M3.
func (l *MultiLock) Get(ctx context.Context) (*LeaderElectionRecord, []byte, error) {
	primary, primaryRaw, missing, err := getHalf(ctx, l.Primary)
	if err != nil {
		return nil, nil, err
	}
	secondary, secondaryRaw, alsoMissing, err := getHalf(ctx, l.Secondary)
	if err == nil && alsoMissing != nil {
		err = missing // nil if there is a primary
	}
	if err != nil {
		return nil, nil, err
	}
	record, other := *primary, secondary
	switch {
	case primary.HolderIdentity == "":
		record, other = *secondary, primary
	case secondary.HolderIdentity != "" && secondary.HolderIdentity != primary.HolderIdentity:
		record.HolderIdentity = UnknownLeader
	}
	record.LeaseDurationSeconds = max(
		primary.LeaseDurationSeconds, secondary.LeaseDurationSeconds)
	if secondary.HolderIdentity == primary.HolderIdentity {
		record.RenewTime = secondary.RenewTime // that both have: it is written last
	}
	exist := missing == nil && alsoMissing == nil
	if exist && other.HolderIdentity == "" && record.HolderIdentity != "" &&
		other.LeaderTransitions >= record.LeaderTransitions {
		other.LeaderTransitions++
	}
	record.LeaderTransitions = max(record.LeaderTransitions, other.LeaderTransitions)
	return &record, ConcatRawRecord(primaryRaw, secondaryRaw), nil
}

// getHalf reads one record. That of a missing object is empty.
func getHalf(ctx context.Context, half Interface) (
	record *LeaderElectionRecord, raw []byte, missing, err error,
) {
	record, raw, err = half.Get(ctx)
	if apierrors.IsNotFound(err) {
		return &LeaderElectionRecord{}, nil, err, nil
	}
	return record, raw, nil, err
}

// Create creates both objects. If one of them exists, Get and Update complete the pair.
func (l *MultiLock) Create(ctx context.Context, record LeaderElectionRecord) error {
	if err := l.Primary.Create(ctx, record); err != nil {
		return err
	}
	return l.Secondary.Create(ctx, record)
}

// Update replaces both records, each in the version that was last read or written, or makes an
// object that was never read or is missing.
func (l *MultiLock) Update(ctx context.Context, record LeaderElectionRecord) error {
	for _, half := range []Interface{l.Primary, l.Secondary} {
		err := half.Update(ctx, record)
		if errors.Is(err, errNotRead) || apierrors.IsNotFound(err) {
			err = half.Create(ctx, record)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// RecordEvent records an event of both objects.
func (l *MultiLock) RecordEvent(event string) {
	l.Primary.RecordEvent(event)
	l.Secondary.RecordEvent(event)
}

// Identity returns the candidate's name.
func (l *MultiLock) Identity() string { return l.Primary.Identity() }

// Describe names the primary.
func (l *MultiLock) Describe() string { return l.Primary.Describe() }

// UID returns the primary's UID, if the primary knows it.
func (l *MultiLock) UID() types.UID {
	if primary, ok := l.Primary.(Identified); ok {
		return primary.UID()
	}
	return ""
}

// ConcatRawRecord joins two records' bytes: the result changes when one of them does.
func ConcatRawRecord(primaryRaw, secondaryRaw []byte) []byte {
	return bytes.Join([][]byte{primaryRaw, secondaryRaw}, []byte(","))
}
