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
	if keys := q.Snapshot().Ready; len(keys) > 0 {
		q.gate.pass(trace.Event{Hop: trace.Workqueue, What: "Get", Key: keys[0]})
	}
	return q.ExtendedInterface.GetWithContext(ctx)
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

// signalingOrder is the order of a workqueue that signals each queued key.
type signalingOrder struct {
	workqueue.Queue[string]
	ready *signal
}

// Push adds a key, and signals that.
func (o signalingOrder) Push(key string) {
	o.Queue.Push(key)
	o.ready.send()
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
