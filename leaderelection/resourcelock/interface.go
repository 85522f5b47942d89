// SPDX-License-Identifier: Apache-2.0

// Package resourcelock keeps the record of who leads on an object of the API server, where everybody can read it and a
// write of an old version is refused.
//
//	leaderelection -> [resourcelock] -> a Lease, an Endpoints, a ConfigMap, or two of them
//
// Read interface.go (the record and what a lock does), held.go (the one rule that all locks follow), leaselock.go,
// annotationlock.go, multilock.go (two locks as one, for moving from one kind to another), then client.go and new.go.
// Then go test -v ./leaderelection/resourcelock.
// Goroutines: none. Locking: a mutex guards the version that was last read; no request is made under it.
//
// A lock decides nothing. Whether a lease has expired, and who may take it, is leaderelection's part.
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

// LeaderElectionRecordAnnotationKey is the annotation that holds the record, as JSON, where the object has no field for it.
const LeaderElectionRecordAnnotationKey = "control-plane.alpha.kubernetes.io/leader"

// The kinds of locks that New knows. The last two keep the record twice: on the old object first, then on the Lease.
const (
	EndpointsResourceLock        = "endpoints"
	ConfigMapsResourceLock       = "configmaps"
	LeasesResourceLock           = "leases"
	EndpointsLeasesResourceLock  = "endpointsleases"
	ConfigMapsLeasesResourceLock = "configmapsleases"
)

// LeaderElectionRecord says who leads. The times are the writer's, and only for people: nobody's clock is compared with
// anybody else's.
type LeaderElectionRecord struct {
	// HolderIdentity names the holder. Empty means that nobody holds the lease, and anybody may take it at once.
	HolderIdentity string `json:"holderIdentity"`
	// LeaseDurationSeconds is how long others must see the record unchanged before they may take the lease.
	LeaseDurationSeconds int `json:"leaseDurationSeconds"`
	// AcquireTime is when the holder took the lease.
	AcquireTime metav1.Time `json:"acquireTime"`
	// RenewTime is when the holder last renewed it.
	RenewTime metav1.Time `json:"renewTime"`
	// LeaderTransitions counts how often the lease went from one holder to another.
	LeaderTransitions int `json:"leaderTransitions"`
	// Strategy and PreferredHolder are coordinated leader election's, and are kept by a Lease only.
	Strategy        coordinationv1.CoordinatedLeaseStrategy `json:"strategy"`
	PreferredHolder string                                  `json:"preferredHolder"`
}

// EventRecorder takes a note of what happened to an object. client-go's record.EventRecorder is one.
type EventRecorder interface {
	Eventf(obj runtime.Object, eventType, reason, message string, args ...any)
}

// ResourceLockConfig is what all locks need.
type ResourceLockConfig struct {
	// Identity names this candidate. No two processes may share it: it is all that tells one holder from another.
	Identity string
	// EventRecorder, if not nil, is told when this candidate starts and stops leading.
	EventRecorder EventRecorder
}

// Interface is a record that one of several candidates can change at a time.
//
// Create and Update must fail if somebody else has changed the record since the last Get, Create or Update: all of leader
// election rests on that. Calls must return soon after their ctx is done. The locks of this package may be used from
// several goroutines, but know only one version, so that each candidate needs a lock of its own.
//
// A lock may also have a method UID() types.UID, see Identified.
type Interface interface {
	// Get reads the record. The bytes are different whenever the record is: that they change is how candidates know
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

// Identified is a lock that knows the UID of the object it was last read from or written to; "" before that. Fencing tokens
// carry it.
type Identified interface {
	UID() types.UID
}

// record tells the recorder, if there is one.
func (c ResourceLockConfig) record(subject runtime.Object, event string) {
	if c.EventRecorder != nil {
		c.EventRecorder.Eventf(subject, corev1.EventTypeNormal, "LeaderElection", "%s", c.Identity+" "+event)
	}
}
