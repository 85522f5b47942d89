// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"time"

	"example.com/informerstack/workqueue"
)

// enqueueListed is Enqueue for an object of an informer's initial list.
func (c *Controller[K]) enqueueListed(key K) {
	c.keys.changed(key)
	c.addUnchanged(key)
}

// addUnchanged queues a key for which nothing has changed.
func (c *Controller[K]) addUnchanged(key K) {
	if c.priorities == nil {
		c.queue.Add(key)
		return
	}
	c.priorities.AddWithOpts(workqueue.AddOpts{Priority: c.opts.LowPriority}, key)
}

// addAfter queues the key of a worker later. Nothing has changed, so it keeps its priority.
func (c *Controller[K]) addAfter(key K, after time.Duration) {
	if c.priorities == nil {
		c.queue.AddAfter(key, after)
		return
	}
	c.priorities.AddWithOpts(workqueue.AddOpts{
		After: after, Priority: c.priorities.TakenPriority(key)}, key)
}

// addFailed queues the key of a worker again, when the limiter permits.
func (c *Controller[K]) addFailed(key K, err error) {
	switch {
	case c.priorities != nil:
		priority := c.priorities.TakenPriority(key)
		if c.opts.LowPriorityRetries {
			priority = min(priority, c.opts.LowPriority)
		}
		c.priorities.AddWithOpts(workqueue.AddOpts{
			RateLimited: true, Err: err, Priority: priority}, key)
	case c.extended != nil:
		c.extended.AddFailed(key, err) // the limiter may decide by the error
	default:
		c.queue.AddRateLimited(key)
	}
}
