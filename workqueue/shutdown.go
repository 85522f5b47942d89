// SPDX-License-Identifier: Apache-2.0

package workqueue

// ShutDown refuses new items; those that are queued are still handed out, then workers see shutdown = true. It releases
// every ShutDownWithDrain that waits. It waits for the goroutine of the metrics, never for workers. It may be called
// again.
func (q *Typed[T]) ShutDown() {
	q.refuse(true)
	q.stopMetrics()
	q.releaseMetrics()
}

// ShutDownWithDrain is ShutDown, and returns when no item is queued and no worker has one. So somebody must keep calling
// Get and Done; a later ShutDown ends the wait.
func (q *Typed[T]) ShutDownWithDrain() {
	released := q.refuse(false)
	q.stopMetrics()
	defer q.releaseMetrics()

	q.mu.Lock()
	defer q.mu.Unlock()
	for q.entries.len > 0 && q.released == released {
		q.drained.Wait()
	}
}

// ShuttingDown reports whether the queue refuses new items.
func (q *Typed[T]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.shuttingDown
}

// refuse turns new items away and wakes every worker to see it. It returns how often waits for a drain were released.
func (q *Typed[T]) refuse(release bool) int {
	q.mu.Lock()
	q.shuttingDown = true
	if release {
		q.released++
		q.drained.Broadcast()
	}
	released, asleep := q.released, q.asleep
	q.asleep = nil
	for _, s := range asleep {
		s.index = woken
	}
	q.mu.Unlock()

	for _, s := range asleep {
		s.wakeUp()
	}
	return released
}

func (q *Typed[T]) stopMetrics() {
	if q.metrics != nil {
		q.metrics.stop()
	}
}

func (q *Typed[T]) releaseMetrics() {
	if q.metrics != nil {
		q.metrics.release()
	}
}
