// SPDX-License-Identifier: Apache-2.0

package lab

// codeQueue is the workqueue as the changed code calls it.
type codeQueue struct {
	heldQueue
	changes *codeChanges
	enqueue func(key string) // Controller.Enqueue
}

// Done ends the work on a key, unless the call is removed.
func (q codeQueue) Done(key string) {
	if !q.changes.drop(key) {
		q.heldQueue.Done(key)
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
