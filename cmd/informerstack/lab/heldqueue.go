// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"sync"
	"sync/atomic"

	"example.com/informerstack/observe/trace"
	"example.com/informerstack/workqueue"
)

// heldQueue lets the next key wait for the time control before a worker gets it. Meanwhile the key
// is dirty and in the queue, and another Add of it changes nothing. Its workers stop when their
// context ends, or after ShutDown.
//
//	H1  only the worker that has the turn waits for a key, or gets one
type heldQueue struct {
	workqueue.ExtendedInterface[string]
	gate  *gate
	ready *signal       // a key was queued, or the queue was shut down
	turn  chan struct{} // capacity 1
	// draining is set before the queue below is drained, which wakes only those that wait there
	draining *atomic.Bool
}

// Get is GetWithContext without an end.
func (q heldQueue) Get() (key string, shutdown bool) {
	return q.GetWithContext(context.Background())
}

// GetWithContext waits for a key and for the time control, and gets the key.
func (q heldQueue) GetWithContext(ctx context.Context) (key string, shutdown bool) {
	select {
	case q.turn <- struct{}{}:
		defer func() { <-q.turn }()
	case <-ctx.Done():
		return "", true
	}
	idle := func() bool { return q.Len() == 0 && !q.ShuttingDown() && !q.draining.Load() }
	for next := q.ready.next(); idle(); next = q.ready.next() {
		select {
		case <-next:
		case <-ctx.Done():
			return "", true
		}
	}
	for next := q.first(); next != ""; { // another one may overtake it meanwhile
		q.gate.pass(trace.Event{Hop: trace.Workqueue, What: "Get", Key: next})
		held := next
		if next = q.first(); next == held {
			break
		}
	}
	return q.ExtendedInterface.GetWithContext(ctx)
}

// first is the key that a worker would get now, or "".
func (q heldQueue) first() string {
	if ready := workqueue.SnapshotOf(q.ExtendedInterface, 0, 1).Ready; len(ready) > 0 {
		return ready[0]
	}
	return ""
}

// ShutDown shuts the queue down, and wakes the worker that waits for a key.
func (q heldQueue) ShutDown() {
	q.ExtendedInterface.ShutDown()
	q.ready.send()
}

// ShutDownWithDrain drains the queue, and wakes the worker that waits for a key.
func (q heldQueue) ShutDownWithDrain() {
	q.draining.Store(true)
	q.ready.send()
	q.ExtendedInterface.ShutDownWithDrain()
}

// plainQueue is the queue below a laboratory's workqueue. It signals each queued key.
type plainQueue struct {
	*workqueue.Typed[string]
	ready *signal
}

// Add adds a key, and signals that.
func (q plainQueue) Add(key string) {
	q.Typed.Add(key)
	q.ready.send()
}

// Done ends the work on a key, which may be queued again.
func (q plainQueue) Done(key string) {
	q.Typed.Done(key)
	q.ready.send()
}

// signal wakes those that wait for its next sending.
type signal struct {
	mu      sync.Mutex
	waiting chan struct{} // closed by send; nil if nothing waits
}

// next returns a channel that the next send closes.
func (s *signal) next() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting == nil {
		s.waiting = make(chan struct{})
	}
	return s.waiting
}

func (s *signal) send() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting != nil {
		close(s.waiting)
		s.waiting = nil
	}
}
