// SPDX-License-Identifier: Apache-2.0

package controller

// Status is a controller in numbers at one moment: a Snapshot without keys, and cheap.
type Status struct {
	Name        string
	Phase       Phase
	Queued      int    // keys that a worker may take now
	Running     int    // calls of reconcile
	Failing     int    // keys that failed since they last changed, and will be tried again
	DeadLetters int    // keys given up
	Evicted     uint64 // dead letters dropped for newer ones
	KeyErrors   uint64 // notifications of which no key could be computed
}

// Status returns the controller's present numbers. It never blocks for long and copies nothing.
func (c *Controller[K]) Status() Status {
	s := Status{
		Name:      c.name,
		Phase:     phases[c.phase.Load()],
		Queued:    c.queue.Len(),
		KeyErrors: c.keyErrors.Load(),
	}
	c.ledger.status(&s)
	return s
}

func (l *ledger[K]) status(s *Status) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s.Running = len(l.running)
	s.Failing = len(l.failing)
	s.DeadLetters = len(l.letters)
	s.Evicted = l.evicted
}
