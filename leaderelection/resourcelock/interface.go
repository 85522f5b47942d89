// SPDX-License-Identifier: Apache-2.0

// Package resourcelock keeps the record of the current leader in an object of the API server. Every
// candidate can read it, and the server refuses a write to an old version.
//
//	leaderelection -> [resourcelock] -> a Lease, an Endpoints, a ConfigMap, or two of them
//
// To use it, make a lock with [NewFromKubeconfig], kind [LeasesResourceLock], and give it to an
// elector. The other kinds are for elections that are to be moved to Leases.
//
// Read interface.go (the record and what a lock does), held.go (the one rule that all locks
// follow), leaselock.go, annotationlock.go, multilock.go (two locks as one, for moving from one
// kind to another), then client.go and new.go. Then go test -v ./leaderelection/resourcelock.
// Goroutines: none. Locking: a mutex guards the version that was last read; no request is made
// under it.
//
// A lock decides nothing: package leaderelection decides whether a lease has expired, and whether a
// candidate may take it.
//
// Source: tools/leaderelection/resourcelock/interface.go Interface
package resourcelock

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// LeaderElectionRecordAnnotationKey is the annotation that holds the record, as JSON, where the
// object has no field for it.
const LeaderElectionRecordAnnotationKey = "control-plane.alpha.kubernetes.io/leader"

// The kinds of locks that New knows. The last two keep the record twice: on the old object first,
// then on the Lease.
const (
	EndpointsResourceLock        = "endpoints"
	ConfigMapsResourceLock       = "configmaps"
	LeasesResourceLock           = "leases"
	EndpointsLeasesResourceLock  = "endpointsleases"
	ConfigMapsLeasesResourceLock = "configmapsleases"
)

// LeaderElectionRecord describes the current leader. The times are from the writer's clock, and are
// only for display: no candidate compares them with its own clock.
type LeaderElectionRecord struct {
	// HolderIdentity names the holder. Empty means that the lease has no holder, and that any
	// candidate may take it at once.
	HolderIdentity string `json:"holderIdentity"`
	// LeaseDurationSeconds is how long others must see the record unchanged before they may take
	// the lease.
	LeaseDurationSeconds int `json:"leaseDurationSeconds"`
	// AcquireTime is when the holder took the lease.
	AcquireTime metav1.Time `json:"acquireTime"`
	// RenewTime is when the holder last renewed it.
	RenewTime metav1.Time `json:"renewTime"`
	// LeaderTransitions counts how often the lease went from one holder to another.
	LeaderTransitions int `json:"leaderTransitions"`
	// Strategy and PreferredHolder belong to coordinated leader election. Only a Lease keeps them.
	Strategy        coordinationv1.CoordinatedLeaseStrategy `json:"strategy"`
	PreferredHolder string                                  `json:"preferredHolder"`
}

// EventRecorder records events of an object. client-go's record.EventRecorder is one.
type EventRecorder interface {
	Eventf(obj runtime.Object, eventType, reason, message string, args ...any)
}

// ResourceLockConfig is what all locks need.
type ResourceLockConfig struct {
	// Identity names this candidate. No two processes may share it: holders differ in nothing else.
	Identity string
	// EventRecorder, if not nil, records when this candidate starts and stops leading.
	EventRecorder EventRecorder
}

// Interface is a record that one of several candidates can change at a time.
//
// Create and Update must fail if another candidate has changed the record since the last Get,
// Create or Update: leader election depends on that. Calls must return soon after their ctx is
// done. The locks of this package may be used from several goroutines, but remember only one
// version, so each candidate needs a lock of its own.
//
// A lock may also have a method UID() types.UID, see Identified.
type Interface interface {
	// Get reads the record. The bytes differ whenever the record does: candidates know by a change
	// that the holder is alive. The error of a missing object satisfies apierrors.IsNotFound.
	Get(ctx context.Context) (*LeaderElectionRecord, []byte, error)
	// Create makes the object with the record.
	Create(ctx context.Context, record LeaderElectionRecord) error
	// Update replaces the record in the version of the object that was last read or written.
	Update(ctx context.Context, record LeaderElectionRecord) error
	// RecordEvent notes that this candidate did something, such as "became leader".
	RecordEvent(event string)
	// Identity returns the candidate's name.
	Identity() string
	// Describe names the object, for logs.
	Describe() string
}

// Identified is a lock that knows the UID of the object it was last read from or written to; ""
// before that. Fencing tokens carry it.
type Identified interface {
	UID() types.UID
}

// record records an event, if there is a recorder.
func (c ResourceLockConfig) record(subject runtime.Object, event string) {
	if c.EventRecorder != nil {
		c.EventRecorder.Eventf(subject, corev1.EventTypeNormal, "LeaderElection",
			"%s", c.Identity+" "+event)
	}
}
