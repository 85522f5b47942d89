// SPDX-License-Identifier: Apache-2.0

package resourcelock

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// UnknownLeader is the holder that a MultiLock reports when its two records name different ones.
const UnknownLeader = "leaderelection.k8s.io/unknown"

// MultiLock keeps the record twice, so that candidates can be moved from one kind of lock to
// another while they run. All go from the old lock to the MultiLock first, then from it to the new
// one:
//
//	candidates   read
//	old          the primary
//	in between   the primary and the secondary
//	new          the secondary
//
// Every write goes to the primary first, and to the secondary only if that succeeded. A candidate
// leads only if it holds both:
//
//	M1  a record whose two halves name different holders is held by UnknownLeader, which is no
//	    candidate's identity
//	M2  a half that names another holder is never written, except in the version in which it was
//	    seen to expire
//
// Primary and Secondary must have the same identity.
//
// Source: tools/leaderelection/resourcelock/multilock.go MultiLock
type MultiLock struct {
	Primary   Interface
	Secondary Interface
}

// Get reads both records, and returns the primary's if they name the same holder. If there is no
// secondary yet, the primary's holder is a candidate that does not know of it, unless it is this
// candidate: then Get returns the secondary's error, and Create completes the pair.
func (l *MultiLock) Get(ctx context.Context) (*LeaderElectionRecord, []byte, error) {
	primary, primaryRaw, err := l.Primary.Get(ctx)
	if err != nil {
		return nil, nil, err
	}
	secondary, secondaryRaw, err := l.Secondary.Get(ctx)
	if apierrors.IsNotFound(err) && primary.HolderIdentity != l.Identity() {
		return primary, primaryRaw, nil
	}
	if err != nil {
		return nil, nil, err
	}
	if primary.HolderIdentity != secondary.HolderIdentity {
		primary.HolderIdentity = UnknownLeader
		if primaryRaw, err = json.Marshal(primary); err != nil {
			return nil, nil, fmt.Errorf("encode record of %s: %w", l.Describe(), err)
		}
	}
	return primary, ConcatRawRecord(primaryRaw, secondaryRaw), nil
}

// Create creates the objects that are missing. An existing primary must be held by this candidate.
func (l *MultiLock) Create(ctx context.Context, record LeaderElectionRecord) error {
	if err := l.Primary.Create(ctx, record); err != nil {
		if !apierrors.IsAlreadyExists(err) {
			return err
		}
		primary, _, getErr := l.Primary.Get(ctx)
		if getErr != nil || primary.HolderIdentity != l.Identity() {
			return err // another candidate has created it first
		}
	}
	return l.Secondary.Create(ctx, record)
}

// Update replaces both records, each in the version that was last read or written, or makes the
// secondary if there was none.
func (l *MultiLock) Update(ctx context.Context, record LeaderElectionRecord) error {
	if err := l.Primary.Update(ctx, record); err != nil {
		return err
	}
	err := l.Secondary.Update(ctx, record)
	if errors.Is(err, errNotRead) || apierrors.IsNotFound(err) {
		return l.Secondary.Create(ctx, record)
	}
	return err
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
