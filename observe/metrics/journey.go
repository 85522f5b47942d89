// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
	"k8s.io/apimachinery/pkg/api/meta"

	"example.com/informerstack/controller"
	"example.com/informerstack/informer"
	"example.com/informerstack/internal/helpers/boundedmap"
	"example.com/informerstack/internal/helpers/objects"
	"example.com/informerstack/store"
)

// maxFollowed bounds how many keys a Journey remembers at each of its two stations. Changes of
// further keys are not measured, unless one of these is stale, as boundedmap defines it. Tests
// lower it.
var maxFollowed = 1 << 16

// Journey measures how long a change travels: from its arrival, through queue, store, handler and
// workqueue, to the end of the first reconcile that succeeds after it. Waits between failed
// attempts count.
//
// It is a hook at three places:
//
//	reflector -> [Transform] -> deltafifo -> store -> [Handler] -> workqueue -> [Reconcile]
//
// The first may be left out: then a journey begins with the call of the handler. Unlike the rest of
// the package, a Journey costs something for each change: two locks and two map entries.
//
//	J1  arrivals has a key at most once, with its newest resourceVersion; a delete that the
//	    handler sees removes it
//	J2  begun has the keys that changed since their last successful reconcile and their last
//	    tombstone, with the oldest such arrival
type Journey[K comparable] struct {
	travel prometheus.Observer
	keysOf func(obj any) []K

	mu       sync.Mutex
	arrivals *boundedmap.Map[string, arrival]
	begun    *boundedmap.Map[K, time.Time]
}

type arrival struct {
	resourceVersion string
	at              time.Time
}

// NewJourney measures the changes that c's controller handles, in
// controller_event_to_reconcile_seconds. keysOf returns the keys that its handler adds for an
// object or a tombstone; nil if it ignores the object.
func NewJourney[K comparable](c *Controller, keysOf func(obj any) []K) *Journey[K] {
	return &Journey[K]{
		travel:   c.travel,
		keysOf:   keysOf,
		arrivals: boundedmap.New[string, arrival](maxFollowed),
		begun:    boundedmap.New[K, time.Time](maxFollowed),
	}
}

// Transform notes arrivals, then does what next does; nil does nothing. It is for the informer's
// Transform.
func (j *Journey[K]) Transform(next store.TransformFunc) store.TransformFunc {
	return func(obj any) (any, error) {
		j.arrived(obj, time.Now())
		if next == nil {
			return obj, nil
		}
		return next(obj)
	}
}

// Handler notes each change, then calls inner. With a Transform it must receive all changes: put a
// filter inside.
func (j *Journey[K]) Handler(inner informer.ResourceEventHandler) informer.ResourceEventHandler {
	return journeyHandler[K]{j, inner}
}

// Reconcile measures the journeys that end with a success of next. If the context has a sampled
// span, its trace is an exemplar: put package spans outside.
func (j *Journey[K]) Reconcile(next controller.ReconcileFunc[K]) controller.ReconcileFunc[K] {
	return func(ctx context.Context, key K) (result controller.Result, err error) {
		since, known := j.take(key)
		goesOn := known // even if next panics or ends its goroutine
		defer func() {
			if goesOn {
				j.begin(key, since)
			}
		}()
		result, err = next(ctx, key)
		if known && err == nil {
			j.observe(ctx, time.Since(since).Seconds())
		}
		goesOn = known && err != nil && !errors.Is(err, controller.TerminalError(nil))
		return result, err
	}
}

// observe adds the trace of the reconcile as exemplar, if it is sampled.
func (j *Journey[K]) observe(ctx context.Context, seconds float64) {
	span := trace.SpanContextFromContext(ctx)
	if travel, ok := j.travel.(prometheus.ExemplarObserver); ok && span.IsSampled() {
		travel.ObserveWithExemplar(seconds,
			prometheus.Labels{"trace_id": span.TraceID().String()})
		return
	}
	j.travel.Observe(seconds)
}

func (j *Journey[K]) arrived(obj any, now time.Time) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return
	}
	key := store.MetaObjectToName(m).String()
	j.mu.Lock()
	defer j.mu.Unlock()
	j.arrivals.Put(key, arrival{m.GetResourceVersion(), now})
}

// arrivalOf is when the state obj arrived, or now if that was not noted, or was overwritten by a
// newer state's.
func (j *Journey[K]) arrivalOf(obj any, deleted bool) time.Time {
	now := time.Now()
	if tombstone, ok := obj.(store.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	m, err := meta.Accessor(obj)
	if err != nil {
		return now
	}
	key := store.MetaObjectToName(m).String()
	j.mu.Lock()
	defer j.mu.Unlock()
	a, known := j.arrivals.Get(key)
	same := known && a.resourceVersion == m.GetResourceVersion()
	if same || deleted {
		j.arrivals.Delete(key)
	}
	if !same {
		return now
	}
	return a.at
}

// begin notes that key has to be reconciled for a change that arrived at a time.
func (j *Journey[K]) begin(key K, at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if since, known := j.begun.Get(key); known && since.Before(at) {
		at = since
	}
	j.begun.Put(key, at)
}

func (j *Journey[K]) take(key K) (since time.Time, known bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	since, known = j.begun.Get(key)
	j.begun.Delete(key)
	return since, known
}

type journeyHandler[K comparable] struct {
	journey *Journey[K]
	inner   informer.ResourceEventHandler
}

// Unwrap lets messages name the handler inside.
func (h journeyHandler[K]) Unwrap() informer.ResourceEventHandler { return h.inner }

// OnAdd implements informer.ResourceEventHandler.
func (h journeyHandler[K]) OnAdd(obj any, isInInitialList bool) {
	h.begin(obj, h.journey.arrivalOf(obj, false))
	h.inner.OnAdd(obj, isInInitialList)
}

// OnUpdate implements informer.ResourceEventHandler. That nothing changed is no event.
func (h journeyHandler[K]) OnUpdate(oldObj, newObj any) {
	if at := h.journey.arrivalOf(newObj, false); !objects.SameVersion(oldObj, newObj) {
		h.begin(newObj, at)
	}
	h.inner.OnUpdate(oldObj, newObj)
}

// OnDelete implements informer.ResourceEventHandler. A tombstone ends the journeys of its keys: it
// is not known when the object was deleted, and with package shard another replica has it now.
func (h journeyHandler[K]) OnDelete(obj any) {
	at := h.journey.arrivalOf(obj, true)
	if _, missed := obj.(store.DeletedFinalStateUnknown); missed {
		for _, key := range h.journey.keysOf(obj) {
			h.journey.take(key)
		}
	} else {
		h.begin(obj, at)
	}
	h.inner.OnDelete(obj)
}

func (h journeyHandler[K]) begin(obj any, at time.Time) {
	for _, key := range h.journey.keysOf(obj) {
		h.journey.begin(key, at)
	}
}
