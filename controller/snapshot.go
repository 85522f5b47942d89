// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"math"
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
	Missing []MissingCache         // caches that are not synced
	Ready   []K                    // keys that a worker may take now, next first
	Waiting []workqueue.Waiting[K] // keys with a delay, next first
	Limited int                    // keys that the rate limiter remembers
	// Priorities and Held are those of a workqueue.Snapshot.
	Priorities map[K]int
	Held       map[K]workqueue.Group
	Running    []Running[K]       // longest first
	Failing    []FailedKey[K]     // longest first
	Outcomes   map[Outcome]uint64 // finished calls of reconcile
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
	s := c.snapshot()
	if c.extended != nil {
		s.contain(c.extended.Snapshot())
	}
	s.Failing = c.keys.longestFailing(0, math.MaxInt)
	return s
}

// contain adds the content of the queue.
func (s *Snapshot[K]) contain(content workqueue.Snapshot[K]) {
	s.Ready, s.Waiting, s.Limited = content.Ready, content.Waiting, content.Limited
	s.Priorities, s.Held = content.Priorities, content.Held
}

// Groups implements workqueue.Grouped. It returns none if the queue is not Grouped.
func (c *Controller[K]) Groups(limit int) (most []workqueue.Group, all workqueue.GroupTotals) {
	if grouped, ok := c.queue.(workqueue.Grouped); ok {
		return grouped.Groups(limit)
	}
	return nil, all
}

// Part is a part of a Snapshot, for debug pages of controllers of any size. Running is whole: it
// has at most one key for each worker. Status has the lengths of Running and Failing.
type Part[K comparable] struct {
	Snapshot[K]
	Total   workqueue.Totals // the lengths of Ready and Waiting
	Numbers []int            // the places of the Ready keys, as of a workqueue.Part
	LastDue time.Time        // when the last key that waits is due, as of a workqueue.Part
}

// SnapshotOf returns at most limit keys of each list, after the first skip; Running is whole. It
// costs what workqueue.Partial says, and with skip 8 bytes for each key that fails. It copies the
// keys of a queue that is not a workqueue.Partial.
func (c *Controller[K]) SnapshotOf(skip, limit int) Part[K] {
	p := c.part(func() workqueue.Part[K] { return workqueue.SnapshotOf(c.extended, skip, limit) })
	p.Failing = c.keys.longestFailing(skip, limit)
	return p
}

// Find returns the keys that match, and all of Running. It calls match for each key that is ready
// or waits, without a lock, if the queue is a workqueue.Partial. A key that moves meanwhile may be
// found twice, or not.
func (c *Controller[K]) Find(match func(key K) bool) Part[K] {
	p := c.part(func() workqueue.Part[K] { return workqueue.Find(c.extended, match) })
	keys := map[K]bool{} // a key that failed is ready, waits or runs
	for _, key := range p.Ready {
		keys[key] = true
	}
	for _, w := range p.Waiting {
		keys[w.Item] = true
	}
	for _, r := range p.Running {
		if match(r.Key) {
			keys[r.Key] = true
		}
	}
	p.Failing = c.keys.failingOf(keys)
	return p
}

// part adds a part of the content of the queue to a snapshot.
func (c *Controller[K]) part(content func() workqueue.Part[K]) Part[K] {
	p := Part[K]{Snapshot: c.snapshot()}
	if c.extended != nil {
		found := content()
		p.contain(found.Snapshot)
		p.Total, p.Numbers, p.LastDue = found.Total, found.Numbers, found.LastDue
	}
	return p
}

// snapshot returns a Snapshot without Failing and without the content of the queue.
func (c *Controller[K]) snapshot() Snapshot[K] {
	s := Snapshot[K]{Status: c.Status()}
	c.keys.snapshot(&s)
	if c.misuse == nil {
		s.Missing = c.missingCaches()
	}
	slices.SortFunc(s.Running, func(a, b Running[K]) int { return a.Since.Compare(b.Since) })
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
	s.Outcomes = maps.Clone(k.outcomes)
}

// longestFailing returns a page of the keys that failed, those that have failed longest at its
// beginning.
func (k *keyTracker[K]) longestFailing(skip, limit int) (longest []FailedKey[K]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if skip > 0 || len(k.failing) <= limit {
		all := slices.SortedFunc(maps.Values(k.failing), func(a, b *FailedKey[K]) int {
			return a.First.Time.Compare(b.First.Time)
		})
		all = all[min(skip, len(all)):]
		for _, f := range all[:min(limit, len(all))] {
			longest = append(longest, *f)
		}
		return longest
	}
	for _, f := range k.failing {
		if len(longest) >= limit && (limit == 0 || byFirst(longest[limit-1], *f) <= 0) {
			continue
		}
		at, _ := slices.BinarySearchFunc(longest, *f, byFirst[K])
		longest = slices.Insert(longest, at, *f)
		longest = longest[:min(limit, len(longest))]
	}
	return longest
}

// failingOf returns those of the keys that failed, the longest first.
func (k *keyTracker[K]) failingOf(keys map[K]bool) (failing []FailedKey[K]) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key := range keys {
		if f := k.failing[key]; f != nil {
			failing = append(failing, *f)
		}
	}
	slices.SortFunc(failing, byFirst[K])
	return failing
}

func byFirst[K comparable](a, b FailedKey[K]) int { return a.First.Time.Compare(b.First.Time) }
