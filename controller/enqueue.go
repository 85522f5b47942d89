// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"

	"example.com/informerstack/internal/helpers/objects"
	"example.com/informerstack/workqueue"
)

// Enqueue notes a change of key and queues it. It does not block. With Options.MaxAttempts, it
// removes the key's dead letter, and the failures are counted from zero again; the rate limiter's
// own count, which makes the delays longer, ends only with a success or Forget.
//
// Keys are kept before Run has started, and ignored once its context has ended.
func (c *Controller[K]) Enqueue(key K) {
	c.keys.changed(key)
	c.queue.Add(key)
}

// Resync queues key although nothing changed. Unlike Enqueue, it does not reset the count of
// failures, it leaves a dead letter alone, and the key has Options.LowPriority.
func (c *Controller[K]) Resync(key K) {
	if !c.keys.isDead(key) {
		c.addUnchanged(key)
	}
}

// Forget drops the state of key: its entry in the rate limiter, its failures, its dead letter. It
// does not take the key out of the queue. It is meant for keys of objects that are gone; after a
// success the controller does the same.
func (c *Controller[K]) Forget(key K) {
	c.keys.forget(key)
	c.queue.Forget(key)
}

// Queue returns the controller's queue, for example for an event handler. Its Add, AddAfter and
// AddRateLimited count as changes, as Enqueue does. So do not call them for the key being
// reconciled: return a Result.
func (c *Controller[K]) Queue() workqueue.TypedRateLimitingInterface[K] {
	return changeQueue[K]{TypedRateLimitingInterface: c.queue, keys: c.keys}
}

// EnqueueHandler is an event handler that enqueues keys of the objects it receives. It fits the
// informers of package informer and of client-go. Controller.Handler and Controller.MapHandler make
// one.
//
// An update with an unchanged resourceVersion is a Resync, every other notification an Enqueue.
// Keys of the initial list have Options.LowPriority. An update enqueues the keys of both objects,
// so that an owner that lost the object is reconciled.
type EnqueueHandler[K comparable] struct {
	controller *Controller[K]
	keys       func(obj any) ([]K, error)
}

// Handler returns an event handler that enqueues key(obj). The object may be a tombstone, so use a
// key function for tombstones too, such as store.DeletionHandlingMetaNamespaceKeyFunc. An error of
// key is logged and counted in Status.KeyErrors, and nothing is enqueued.
func (c *Controller[K]) Handler(key func(obj any) (K, error)) EnqueueHandler[K] {
	if key == nil {
		return c.MapHandler(nil)
	}
	return c.MapHandler(func(obj any) ([]K, error) {
		k, err := key(obj)
		return []K{k}, err
	})
}

// MapHandler is Handler for objects that concern any number of keys, such as the owners of a Pod.
func (c *Controller[K]) MapHandler(keys func(obj any) ([]K, error)) EnqueueHandler[K] {
	if keys == nil {
		keys = func(any) ([]K, error) { return nil, errors.New("the handler has no key function") }
	}
	return EnqueueHandler[K]{controller: c, keys: keys}
}

// OnAdd enqueues the keys of obj.
func (h EnqueueHandler[K]) OnAdd(obj any, isInInitialList bool) {
	enqueue := h.controller.Enqueue
	if isInInitialList {
		enqueue = h.controller.enqueueListed
	}
	h.each(obj, enqueue)
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

// changeQueue is the controller's queue as callers see it: what they add is a change, not a retry.
type changeQueue[K comparable] struct {
	workqueue.TypedRateLimitingInterface[K]
	keys *keyTracker[K]
}

func (q changeQueue[K]) Add(key K) {
	q.keys.changed(key)
	q.TypedRateLimitingInterface.Add(key)
}

func (q changeQueue[K]) AddAfter(key K, delay time.Duration) {
	q.keys.changed(key)
	q.TypedRateLimitingInterface.AddAfter(key, delay)
}

func (q changeQueue[K]) AddRateLimited(key K) {
	q.keys.changed(key)
	q.TypedRateLimitingInterface.AddRateLimited(key)
}
