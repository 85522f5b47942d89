// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"example.com/informerstack/internal/objects"
	"example.com/informerstack/workqueue"
)

// EnqueueHandler enqueues the keys of the objects that an informer notifies about. It is an event handler for informers, ours
// and client-go's alike. Controller.Handler and Controller.MapHandler make one.
//
// An update that leaves the resourceVersion as it was is a Resync, every other notification an Enqueue. An update enqueues
// the keys of both objects, so that the owner that was left learns of it too.
type EnqueueHandler[K comparable] struct {
	controller *Controller[K]
	keys       func(obj any) ([]K, error)
}

// Handler returns an event handler that enqueues key(obj). The object may be a tombstone, so use a key function that knows
// them, such as store.DeletionHandlingMetaNamespaceKeyFunc. An error of key is logged, counted in Snapshot.KeyErrors, and
// nothing is enqueued.
func (c *Controller[K]) Handler(key func(obj any) (K, error)) EnqueueHandler[K] {
	if key == nil {
		return c.MapHandler(nil)
	}
	return c.MapHandler(func(obj any) ([]K, error) {
		k, err := key(obj)
		if err != nil {
			return nil, err
		}
		return []K{k}, nil
	})
}

// MapHandler is Handler for objects that concern several keys, or none: the owners of a Pod, say.
func (c *Controller[K]) MapHandler(keys func(obj any) ([]K, error)) EnqueueHandler[K] {
	if keys == nil {
		keys = func(any) ([]K, error) { return nil, errors.New("the handler was given no key function") }
	}
	return EnqueueHandler[K]{controller: c, keys: keys}
}

// OnAdd enqueues the keys of obj.
func (h EnqueueHandler[K]) OnAdd(obj any, isInInitialList bool) {
	h.each(obj, h.controller.Enqueue)
}

// OnUpdate enqueues the keys of newObj, and those of oldObj that newObj no longer has.
func (h EnqueueHandler[K]) OnUpdate(oldObj, newObj any) {
	enqueue := h.controller.Enqueue
	if objects.SameVersion(oldObj, newObj) {
		enqueue = h.controller.Resync
	}
	newKeys := sets.New(h.each(newObj, enqueue)...)
	h.each(oldObj, func(key K) {
		if !newKeys.Has(key) {
			enqueue(key)
		}
	})
}

// OnDelete enqueues the keys of obj, which may be a tombstone.
func (h EnqueueHandler[K]) OnDelete(obj any) {
	h.each(obj, h.controller.Enqueue)
}

func (h EnqueueHandler[K]) each(obj any, enqueue func(key K)) []K {
	keys, err := h.keys(obj)
	if err != nil {
		h.controller.keyErrors.Add(1)
		h.controller.logger.Load().Error(err, "No key for an object, nothing is enqueued")
		return nil
	}
	for _, key := range keys {
		enqueue(key)
	}
	return keys
}

// intake is the controller's queue as others see it: what they add is a change, while what the controller itself adds is a
// retry.
type intake[K comparable] struct {
	workqueue.TypedRateLimitingInterface[K]
	keys *keyTracker[K]
}

func (q intake[K]) Add(key K) {
	q.keys.changed(key)
	q.TypedRateLimitingInterface.Add(key)
}

func (q intake[K]) AddAfter(key K, delay time.Duration) {
	q.keys.changed(key)
	q.TypedRateLimitingInterface.AddAfter(key, delay)
}

func (q intake[K]) AddRateLimited(key K) {
	q.keys.changed(key)
	q.TypedRateLimitingInterface.AddRateLimited(key)
}
