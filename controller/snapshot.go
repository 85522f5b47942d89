// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/workqueue"
)

// Metrics hears what a controller does. Its methods are called by the workers, at the same time,
// with no lock held, and should return at once.
type Metrics interface {
	// Workers is called when the workers start.
	Workers(count int)
	// Begin is called before each reconcile.
	Begin()
	// End is called after each reconcile, once its result was acted upon.
	End(report Report)
}

// Report is what came of one reconcile.
type Report struct {
	Outcome  Outcome
	Took     time.Duration
	Terminal bool   // the error is a TerminalError
	Panicked bool   // reconcile panicked or called runtime.Goexit
	TimedOut bool   // Options.ReconcileTimeout passed, whatever was returned
	Buried   Reason // the reason if the key became a dead letter, else ""
	Evicted  bool   // and another dead letter had to make room
}

// Snapshot is a controller at one moment, for a debug page or a readiness check.
type Snapshot[K comparable] struct {
	Name        string
	Phase       Phase
	Missing     []MissingCache         // caches that are not synced
	Queued      int                    // keys that a worker may take now
	Ready       []K                    // those keys, next first; nil if the queue has no Snapshot
	Waiting     []workqueue.Waiting[K] // keys with a delay, next first; nil if the queue has no Snapshot
	Limited     int                    // keys that the rate limiter remembers; 0 if the queue has no Snapshot
	Running     []Running[K]           // longest first
	Failing     []Failing[K]           // longest first
	DeadLetters int                    // keys given up
	Evicted     uint64                 // dead letters dropped for newer ones
	Outcomes    map[Outcome]uint64     // finished reconciles
	KeyErrors   uint64                 // notifications of which no key could be computed
}

// Running is one call of reconcile.
type Running[K comparable] struct {
	Key         K
	ReconcileID types.UID
	Since       time.Time
}

// Failing is a key that failed since it last changed, and that will be tried again.
type Failing[K comparable] struct {
	Key      K
	Attempts int // failed calls in a row
	First    Failure
	Last     Failure
}

// Snapshot returns the controller's present state. It costs a copy of what is queued, waiting,
// running and failing.
func (c *Controller[K]) Snapshot() Snapshot[K] {
	s := Snapshot[K]{
		Name:      c.name,
		Phase:     phases[c.phase.Load()],
		Queued:    c.queue.Len(),
		KeyErrors: c.keyErrors.Load(),
	}
	if c.misuse == nil {
		s.Missing = c.missingCaches()
	}
	if queue, ok := c.queue.(workqueue.ContextInterface[K]); ok {
		content := queue.Snapshot()
		s.Ready, s.Waiting, s.Limited = content.Ready, content.Waiting, content.Limited
	}
	c.keys.snapshot(&s)
	slices.SortFunc(s.Running, func(a, b Running[K]) int { return a.Since.Compare(b.Since) })
	slices.SortFunc(s.Failing, func(a, b Failing[K]) int { return a.First.Time.Compare(b.First.Time) })
	return s
}

func (k *keyTracker[K]) snapshot(s *Snapshot[K]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, r := range k.running {
		s.Running = append(s.Running, Running[K]{Key: key, ReconcileID: r.ctx.reconcileID(), Since: r.since})
	}
	for key, f := range k.failing {
		s.Failing = append(s.Failing, Failing[K]{Key: key, Attempts: f.attempts, First: f.first, Last: f.last})
	}
	s.DeadLetters = len(k.letters)
	s.Evicted = k.evicted
	s.Outcomes = maps.Clone(k.outcomes)
}
