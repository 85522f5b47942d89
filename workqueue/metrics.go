// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"reflect"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Metrics are called by the queue that they belong to. A field that is nil is not measured.
//
// Adds, Depth, PriorityDepth, Latency and WorkDuration are called under the queue's lock: they must
// not call the queue, and a slow one delays it.
type Metrics struct {
	// Adds is called at each Add that was not ignored.
	Adds func()
	// Depth is called with 1 after such an Add, and with -1 after a Get and for an item that is
	// handed back. The sum is the number of dirty items: those that wait for a worker, or for the
	// Done of the worker that has them.
	Depth func(change int)
	// PriorityDepth is Depth with the priority of the item. A Fair calls it in place of Depth. When
	// the priority of an item rises, it calls it with -1 for the old one and 1 for the new one.
	PriorityDepth func(priority, change int)
	// Latency is called at each Get with the time since the item's Add.
	Latency func(waited time.Duration)
	// WorkDuration is called at each Done with the time since the item's Get.
	WorkDuration func(worked time.Duration)
	// Unfinished is called every 500 ms. Its arguments are the sum and the maximum of the times
	// since workers got their items.
	Unfinished func(total, longest time.Duration)
	// Groups is called by a Fair every 500 ms with the ten groups that have the most queued items,
	// the most first, and the sums over all groups. It runs without the lock.
	Groups func(most []Group, all GroupTotals)
	// Retries is called at each AddAfter, whatever the delay.
	Retries func()
	// Waiting is called every 500 ms, and when the waits end at a shutdown. Its arguments are the
	// number of items that wait, and how much longer the last of them will: a delay of hours shows
	// when it is chosen, not hours later. It looks at half of these items under the lock.
	Waiting func(items int, longest time.Duration)
	// Released is called once, when ShutDown or a drain is about to return. After it the queue
	// calls Metrics only for workers that still finish, and for what is handed back.
	Released func()
}

// reportPeriod is the time between two calls of Metrics.Unfinished, or of Metrics.Waiting.
const reportPeriod = 500 * time.Millisecond

// queueMetrics measures one Typed for its Metrics. The Typed calls added, taken and finished
// under its lock; start, stop and released may be called on nil, which is a Typed without Metrics.
type queueMetrics struct {
	Metrics
	clock       clock.WithTicker
	made        time.Time
	releaseOnce sync.Once
	reports     reports // of Unfinished
}

// newQueueMetrics returns nil for the zero Metrics.
func newQueueMetrics(metrics Metrics, c clock.WithTicker) *queueMetrics {
	if reflect.ValueOf(metrics).IsZero() {
		return nil
	}
	return &queueMetrics{Metrics: metrics, clock: c, made: c.Now()}
}

// start starts a goroutine that calls Unfinished, with the results of ages, until stop.
func (m *queueMetrics) start(ages func() (total, longest time.Duration)) {
	if m != nil && m.Unfinished != nil {
		m.reports.start(m.clock, func() { m.Unfinished(ages()) })
	}
}

// now returns the time since the queue was made.
func (m *queueMetrics) now() time.Duration { return m.clock.Since(m.made) }

// added reports an Add that was not ignored, and returns its time.
func (m *queueMetrics) added() time.Duration {
	now := m.now()
	if m.Adds != nil {
		m.Adds()
	}
	if m.Depth != nil {
		m.Depth(1)
	}
	return now
}

// depthAt reports a change of the number of dirty items of a priority.
func (m *queueMetrics) depthAt(priority, change int) {
	if m.PriorityDepth != nil {
		m.PriorityDepth(priority, change)
	}
}

// taken reports a Get of an item that was added at a time, and returns the time of the Get.
func (m *queueMetrics) taken(added time.Duration) time.Duration {
	now := m.now()
	if m.Depth != nil {
		m.Depth(-1)
	}
	if m.Latency != nil {
		m.Latency(now - added)
	}
	return now
}

// finished reports a Done of an item that a worker took at a time.
func (m *queueMetrics) finished(taken time.Duration) {
	if m.WorkDuration != nil {
		m.WorkDuration(m.now() - taken)
	}
}

// handedBack reports that items are not dirty any more.
func (m *queueMetrics) handedBack(items int) {
	if m != nil && m.Depth != nil {
		for range items {
			m.Depth(-1)
		}
	}
}

// stop returns when the goroutine of start has ended. It may be called again.
func (m *queueMetrics) stop() {
	if m != nil {
		m.reports.stop()
	}
}

// released calls Released, once.
func (m *queueMetrics) released() {
	if m != nil && m.Released != nil {
		m.releaseOnce.Do(m.Released)
	}
}

// report starts a goroutine that calls waiting, unless that is nil. stop ends it after a last call.
func (q *TypedDelayingQueue[T]) report(
	waiting func(items int, longest time.Duration),
) (stop func()) {
	if waiting == nil {
		return func() {}
	}
	r, report := &reports{}, func() { waiting(q.waits()) }
	r.start(q.clock, report)
	return sync.OnceFunc(func() {
		r.stop()
		report()
	})
}

// reports are the calls of a metric that is called every reportPeriod.
type reports struct {
	quit     chan struct{} // nil if start was not called
	quitOnce sync.Once
	running  sync.WaitGroup
}

// start starts a goroutine that calls report until stop.
func (r *reports) start(c clock.WithTicker, report func()) {
	r.quit = make(chan struct{})
	r.running.Go(func() {
		ticker := c.NewTicker(reportPeriod)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C():
				report()
			case <-r.quit:
				return
			}
		}
	})
}

// stop returns when the goroutine of start has ended. It may be called again.
func (r *reports) stop() {
	if r.quit != nil {
		r.quitOnce.Do(func() { close(r.quit) })
		r.running.Wait()
	}
}
