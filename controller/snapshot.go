// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/workqueue"
)

// Status is a controller in numbers at one moment.
type Status struct {
	Name        string
	Phase       Phase
	Queued      int    // keys that a worker may take now
	Running     int    // calls of reconcile
	Failing     int    // keys that failed, see FailedKey.Attempts, and will be retried
	DeadLetters int    // keys given up
	Evicted     uint64 // dead letters dropped for newer ones
	KeyErrors   uint64 // notifications without a key, because the key function failed
}

// Snapshot is a controller at one moment, for a debug page or a readiness check.
type Snapshot[K comparable] struct {
	Status
	Missing  []MissingCache         // caches that are not synced
	Ready    []K                    // keys that a worker may take now, next first
	Waiting  []workqueue.Waiting[K] // keys with a delay, next first
	Limited  int                    // keys that the rate limiter remembers
	Running  []Running[K]           // longest first
	Failing  []FailedKey[K]         // longest first
	Outcomes map[Outcome]uint64     // finished calls of reconcile
}

// Running is one call of reconcile.
type Running[K comparable] struct {
	Key         K
	ReconcileID types.UID
	Since       time.Time
}

// Status returns the controller's present numbers. It does not block for long, and copies no keys.
func (c *Controller[K]) Status() Status {
	s := Status{
		Name:      c.name,
		Phase:     c.phase.Load().(Phase),
		Queued:    c.queue.Len(),
		KeyErrors: c.keyErrors.Load(),
	}
	c.keys.mu.Lock()
	defer c.keys.mu.Unlock()
	c.keys.countLocked(&s)
	return s
}

// Snapshot returns the controller's present state. It costs a copy of the keys that are queued,
// waiting, running or failing. Ready, Waiting and Limited are empty if the queue is not a
// workqueue.ExtendedInterface.
func (c *Controller[K]) Snapshot() Snapshot[K] {
	s := Snapshot[K]{Status: c.Status()}
	c.keys.snapshot(&s)
	if c.misuse == nil {
		s.Missing = c.missingCaches()
	}
	if c.extended != nil {
		content := c.extended.Snapshot()
		s.Ready, s.Waiting, s.Limited = content.Ready, content.Waiting, content.Limited
	}
	slices.SortFunc(s.Running, func(a, b Running[K]) int { return a.Since.Compare(b.Since) })
	slices.SortFunc(s.Failing, func(a, b FailedKey[K]) int {
		return a.First.Time.Compare(b.First.Time)
	})
	return s
}

func (k *keyTracker[K]) countLocked(s *Status) {
	s.Running, s.Failing = len(k.calls), len(k.failing)
	s.DeadLetters, s.Evicted = len(k.letters), k.evicted
}

func (k *keyTracker[K]) snapshot(s *Snapshot[K]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.countLocked(&s.Status)
	for key, call := range k.calls {
		s.Running = append(s.Running, Running[K]{key, call.reconcileID(), call.since()})
	}
	for _, f := range k.failing {
		s.Failing = append(s.Failing, *f)
	}
	s.Outcomes = maps.Clone(k.outcomes)
}
