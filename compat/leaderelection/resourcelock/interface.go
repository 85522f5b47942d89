// SPDX-License-Identifier: Apache-2.0

// Package resourcelock is client-go's tools/leaderelection/resourcelock, name for name, on the lock
// of this module.
//
//	compat/leaderelection -> [compat/leaderelection/resourcelock]
//	    -> leaderelection/resourcelock -> a Lease
//
// The interfaces and records are aliases of the same names in
// example.com/informerstack/leaderelection/resourcelock: see that package. This package adds
// LeaseLock, which uses client-go's typed client, and the constructors, which support only that
// kind of lock, as client-go's do.
//
// Read interface.go, leaselock.go, new.go. Then go test ./compat/leaderelection/resourcelock.
// Goroutines: none. Locking: that of the lock beneath.
//
// Source: tools/leaderelection/resourcelock/interface.go Interface
package resourcelock

import "example.com/informerstack/leaderelection/resourcelock"

// LeaderElectionRecordAnnotationKey is the annotation with the record of locks that are not Leases.
const LeaderElectionRecordAnnotationKey = resourcelock.LeaderElectionRecordAnnotationKey

// LeasesResourceLock is the kind of lock that New creates.
const LeasesResourceLock = resourcelock.LeasesResourceLock

// UnknownLeader is the holder that a MultiLock reports if its two records name different holders.
//
// Deprecated: only MultiLock has a use for it.
const UnknownLeader = resourcelock.UnknownLeader

type (
	// Interface is a record that only one of several candidates can change at a time.
	Interface = resourcelock.Interface
	// LeaderElectionRecord names the leader.
	LeaderElectionRecord = resourcelock.LeaderElectionRecord
	// ResourceLockConfig holds the settings of a lock besides its object.
	ResourceLockConfig = resourcelock.ResourceLockConfig
	// EventRecorder records events of an object.
	EventRecorder = resourcelock.EventRecorder

	// MultiLock keeps the record twice.
	//
	// Deprecated: it is for moving from another kind of lock to Leases. This package has only
	// Leases; package leaderelection/resourcelock of this module still has the others.
	MultiLock = resourcelock.MultiLock
)

// ConcatRawRecord joins two records' bytes.
//
// Deprecated: only MultiLock has a use for it.
func ConcatRawRecord(primaryRaw, secondaryRaw []byte) []byte {
	return resourcelock.ConcatRawRecord(primaryRaw, secondaryRaw)
}
