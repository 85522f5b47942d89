// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/informer"
	"example.com/informerstack/store"
	"example.com/informerstack/workqueue"
)

const firstDelay, longestDelay = time.Second, 30 * time.Second

// limiter notes the delays, and checks that each is twice as long as the one before it.
type limiter struct {
	workqueue.TypedRateLimiter[string]
	k *work
}

func newLimiter(k *work) *limiter {
	return &limiter{newDelays(k.p.impl), k}
}

func (l *limiter) When(key string) time.Duration {
	l.k.mu.Lock()
	s := l.k.keyLocked(key)
	want := min(firstDelay<<min(s.delays, 10), longestDelay)
	s.delays++
	d := l.TypedRateLimiter.When(key)
	l.k.mu.Unlock()
	if d != want {
		l.k.p.violate(7, "%s delays %s for %v, want %v", l.k.p.name, key, d, want)
	}
	l.k.delayed(key, d)
	return d
}

func (l *limiter) Forget(key string) {
	l.k.mu.Lock()
	defer l.k.mu.Unlock()
	l.k.keyLocked(key).delays = 0
	l.TypedRateLimiter.Forget(key)
}

func (k *work) delayed(key string, d time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.p.note("%s delays %s for %v", k.p.name, key, d)
	s, now := k.keyLocked(key), time.Now()
	due := now.Add(d)
	// In a tie, the queue may have kept the end of the last delay instead.
	isTie := s.due.Equal(now) || s.tie.Equal(now)
	if !s.due.IsZero() && !now.Before(s.due) { // it ended during the call
		s.queued, s.due = now, time.Time{}
	}
	switch {
	case isTie || len(s.maybe) > 0:
		s.maybe = append(s.maybe, due)
	case s.due.IsZero() || due.Before(s.due):
		s.due = due
	}
}

// teamPrefix begins the keys of teams.
const teamPrefix = "team/"

// keysOf returns the keys that an object concerns: its own, and perhaps that of its team.
func (k *work) keysOf(obj any) ([]string, error) {
	key, err := store.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil || !k.p.has(mapped) {
		return []string{key}, err
	}
	if tombstone, ok := obj.(store.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	return []string{key, teamPrefix + obj.(metav1.Object).GetLabels()["team"]}, nil
}

// enqueuer notes what the controller's handler adds to the queue.
type enqueuer struct {
	k     *work
	inner informer.ResourceEventHandler
}

func (e enqueuer) keys(obj any) []string {
	keys, err := e.k.keysOf(obj)
	if err != nil {
		e.k.p.violate(5, "%s: %v", e.k.p.name, err)
	}
	return keys
}

func (e enqueuer) OnAdd(obj any, initial bool) {
	e.k.enqueues(e.keys(obj), true, func() { e.inner.OnAdd(obj, initial) })
}

func (e enqueuer) OnUpdate(oldObj, newObj any) {
	before, after := oldObj.(metav1.Object), newObj.(metav1.Object)
	isChange := before.GetResourceVersion() != after.GetResourceVersion()
	keys := append(e.keys(oldObj), e.keys(newObj)...)
	e.k.enqueues(keys, isChange, func() { e.inner.OnUpdate(oldObj, newObj) })
}

func (e enqueuer) OnDelete(obj any) {
	e.k.enqueues(e.keys(obj), true, func() { e.inner.OnDelete(obj) })
}

// enqueues calls add, which adds keys to the queue.
func (k *work) enqueues(keys []string, isChange bool, add func()) {
	now := time.Now()
	k.mu.Lock()
	for _, key := range keys {
		s := k.keyLocked(key)
		s.queued, s.changing, s.meanwhile = now, isChange, 0
		if _, dead := k.controller.DeadLetters().Get(key); isChange || !dead {
			s.added = now
		}
	}
	k.mu.Unlock()
	add()
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, key := range keys {
		s := k.keyLocked(key)
		s.changing = false
		if isChange {
			s.changed, s.changedAt = true, time.Now()
			s.failures, s.uncertain = 0, s.meanwhile
		}
	}
}
