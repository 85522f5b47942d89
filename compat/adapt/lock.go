// SPDX-License-Identifier: Apache-2.0

package adapt

import (
	"context"

	"k8s.io/client-go/tools/leaderelection/resourcelock"

	ours "example.com/informerstack/leaderelection/resourcelock"
)

// Lock returns a lock of ours with client-go's types, for an elector of client-go or a manager of
// controller-runtime.
func Lock(lock ours.Interface) resourcelock.Interface { return adaptedLock{lock} }

// CoreLock returns a lock of client-go with our types, for an elector of package leaderelection. It
// does not know the UID of its object, so fencing tokens cannot distinguish an object from a
// successor of the same name.
func CoreLock(lock resourcelock.Interface) ours.Interface { return coreLock{lock} }

// adaptedLock is a lock of ours with client-go's type of record.
type adaptedLock struct{ ours.Interface }

// Get implements resourcelock.Interface.
func (l adaptedLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	return (*resourcelock.LeaderElectionRecord)(record), raw, err
}

// Create implements resourcelock.Interface.
func (l adaptedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Interface.Create(ctx, ours.LeaderElectionRecord(record))
}

// Update implements resourcelock.Interface.
func (l adaptedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Interface.Update(ctx, ours.LeaderElectionRecord(record))
}

// coreLock is a lock of client-go with our type of record.
type coreLock struct{ resourcelock.Interface }

// Get implements Interface of package leaderelection/resourcelock.
func (l coreLock) Get(ctx context.Context) (*ours.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	return (*ours.LeaderElectionRecord)(record), raw, err
}

// Create implements Interface of package leaderelection/resourcelock.
func (l coreLock) Create(ctx context.Context, record ours.LeaderElectionRecord) error {
	return l.Interface.Create(ctx, resourcelock.LeaderElectionRecord(record))
}

// Update implements Interface of package leaderelection/resourcelock.
func (l coreLock) Update(ctx context.Context, record ours.LeaderElectionRecord) error {
	return l.Interface.Update(ctx, resourcelock.LeaderElectionRecord(record))
}
