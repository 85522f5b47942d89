// SPDX-License-Identifier: Apache-2.0

package lab

import "context"

// codeQueue is the workqueue as the changed code calls it.
type codeQueue struct {
	heldQueue
	changes *codeChanges
	closed  *shutDown
	enqueue func(key string) // Controller.Enqueue
}

// Add adds a key, unless the queue is shut down: then it only counts the call.
func (q codeQueue) Add(key string) {
	if !q.closed.refuse() {
		q.heldQueue.Add(key)
	}
}

// Get is GetWithContext without an end.
func (q codeQueue) Get() (key string, shutdown bool) {
	return q.GetWithContext(context.Background())
}

// GetWithContext gets a key, and counts the workers that end because the queue is shut down.
func (q codeQueue) GetWithContext(ctx context.Context) (key string, shutdown bool) {
	key, shutdown = q.heldQueue.GetWithContext(ctx)
	if shutdown && ctx.Err() == nil {
		q.closed.end()
	}
	return key, shutdown
}

// Done ends the work on a key, unless the call is removed.
func (q codeQueue) Done(key string) {
	if !q.changes.drop(key) {
		q.heldQueue.Done(key)
	}
}

// Forget ends the count of a key's failures, unless the call is removed.
func (q codeQueue) Forget(key string) {
	if !q.changes.has(noForget) {
		q.heldQueue.Forget(key)
	}
}

// AddRateLimited adds a key after a delay, unless Add is called in its place.
func (q codeQueue) AddRateLimited(key string) {
	if !q.addAtOnce(key) {
		q.heldQueue.AddRateLimited(key)
	}
}

// AddFailed is AddRateLimited for a caller that knows the error.
func (q codeQueue) AddFailed(key string, err error) {
	if !q.addAtOnce(key) {
		q.heldQueue.AddFailed(key, err)
	}
}

// addAtOnce adds a key as the handler does, if the code says that. The controller takes it for a
// change, counts no failure and never gives the key up.
func (q codeQueue) addAtOnce(key string) bool {
	if !q.changes.has(addAtOnce) {
		return false
	}
	q.enqueue(key)
	return true
}
