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
	c.keys.status(&s)
	return s
}

func (k *keyTracker[K]) status(s *Status) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.Running = len(k.running)
	s.Failing = len(k.failing)
	s.DeadLetters = len(k.letters)
	s.Evicted = k.evicted
}
