// SPDX-License-Identifier: Apache-2.0

package controller

import "context"

// Refused is the key of a call of reconcile that was refused. It is comparable: two are equal if
// they have the same key and controller.
type Refused interface {
	// Requeue queues the key again. This is no change of the key: its failures are kept. It does
	// not block, and is safe for concurrent use. It is a no-op once the queue was shut down.
	Requeue()
}

// Refuse makes the call of reconcile with this context one that does not count. It is for a
// function around reconcile that cannot work on a key yet: what the call returns is ignored, and
// the failures of the key and its entry in the rate limiter stay as they are. Reconcile is called
// again after the next change of the key, or after Refused.Requeue. Reports and metrics have the
// call as OutcomeRequeueAfter.
//
// A call that panics counts all the same. Refuse returns nil if ctx is not the context of a call of
// a Controller, and after the call has returned. It does not block, and is safe for concurrent use.
func Refuse(ctx context.Context) Refused {
	call, ok := ctx.Value(refuserKey{}).(refuser)
	if !ok {
		return nil
	}
	return call.refuse()
}

type refuserKey struct{}

type refuser interface{ refuse() Refused }

// The values of reconcileContext.refusal.
const (
	notRefused int32 = iota
	isRefused
	settled // too late to refuse it
)

func (c *reconcileContext[K]) refuse() Refused {
	if !c.refusal.CompareAndSwap(notRefused, isRefused) && c.refusal.Load() == settled {
		return nil
	}
	return refused[K]{c.controller, c.key}
}

type refused[K comparable] struct {
	controller *Controller[K]
	key        K
}

// Requeue implements Refused.
func (r refused[K]) Requeue() { r.controller.queue.Add(r.key) }
