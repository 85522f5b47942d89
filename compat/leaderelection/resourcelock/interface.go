// SPDX-License-Identifier: Apache-2.0

// Package resourcelock is client-go's tools/leaderelection/resourcelock, name for name, on the lock
// of this module.
//
//	compat/leaderelection -> [compat/leaderelection/resourcelock]
//	    -> leaderelection/resourcelock -> a Lease
//
// What a lock does, and what it keeps, is an alias of the same name in
// example.com/informerstack/leaderelection/resourcelock: read that package. Only here are
// LeaseLock, which is given client-go's typed client, and the constructors, which know no kind of
// lock but that one, as client-go's do not.
//
// Read interface.go, leaselock.go, new.go. Then go test ./compat/leaderelection/resourcelock.
// Goroutines: none. Locking: that of the lock beneath.
//
// Source: tools/leaderelection/resourcelock/interface.go Interface
package resourcelock

import "example.com/informerstack/leaderelection/resourcelock"

// LeaderElectionRecordAnnotationKey is the annotation in which locks kept the record that were not
// Leases.
const LeaderElectionRecordAnnotationKey = resourcelock.LeaderElectionRecordAnnotationKey

// LeasesResourceLock is the kind of lock that New makes.
const LeasesResourceLock = resourcelock.LeasesResourceLock

// UnknownLeader is the holder that a MultiLock reports when its two records name different ones.
//
// Deprecated: only MultiLock has a use for it.
const UnknownLeader = resourcelock.UnknownLeader

type (
	// Interface is a record that one of several candidates can change at a time.
	Interface = resourcelock.Interface
	// LeaderElectionRecord says who leads.
	LeaderElectionRecord = resourcelock.LeaderElectionRecord
	// ResourceLockConfig is what a lock needs besides its object.
	ResourceLockConfig = resourcelock.ResourceLockConfig
	// EventRecorder takes a note of what happened to an object.
	EventRecorder = resourcelock.EventRecorder

	// MultiLock keeps the record twice.
	//
	// Deprecated: it is for moving from another kind of lock to Leases. Only Leases are left here;
	// package leaderelection/resourcelock of this module has the others still.
	MultiLock = resourcelock.MultiLock
)

// ConcatRawRecord joins two records' bytes.
//
// Deprecated: only MultiLock has a use for it.
func ConcatRawRecord(primaryRaw, secondaryRaw []byte) []byte {
	return resourcelock.ConcatRawRecord(primaryRaw, secondaryRaw)
}
