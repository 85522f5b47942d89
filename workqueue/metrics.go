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
// They are called from any goroutine and under no lock, so the sum of all changes of Depth may
// briefly be a number that the queue never had.
type Metrics struct {
	// Adds is called at each Add that was not ignored.
	Adds func()
	// Depth is called with 1 after such an Add and with -1 after a Get. The sum is the number of
	// dirty items: those that wait for a worker, or for the Done of the worker that has them.
	Depth func(change int)
	// Latency is called at each Get with the time since the item's Add.
	Latency func(waited time.Duration)
	// WorkDuration is called at each Done with the time since the item's Get.
	WorkDuration func(worked time.Duration)
	// Unfinished is called every 500 ms with the sum and the maximum of the times for which workers
	// have had their items.
	Unfinished func(total, longest time.Duration)
	// Retries is called at each AddAfter, whatever the delay.
	Retries func()
	// Released is called once, when ShutDown or ShutDownWithDrain is about to return. After it the
	// queue calls Metrics only for workers that still finish.
	Released func()
}

// unfinishedPeriod is the time between two calls of Metrics.Unfinished.
const unfinishedPeriod = 500 * time.Millisecond

// queueMetrics measures one Typed for its Metrics. A queue without Metrics has none: now, added,
// finished, stop and released may be called on nil.
type queueMetrics[T comparable] struct {
	Metrics
	clock       clock.WithTicker
	start       time.Time // other times are durations since start
	releaseOnce sync.Once
	quit        chan struct{}
	quitOnce    sync.Once
	running     sync.WaitGroup

	mu        *sync.Mutex         // the Typed's
	startedAt map[T]time.Duration // of the items that are processing
}

// startQueueMetrics returns nil for the zero Metrics. Otherwise stop ends what it starts.
func startQueueMetrics[T comparable](
	metrics Metrics, c clock.WithTicker, mu *sync.Mutex,
) *queueMetrics[T] {
	if reflect.ValueOf(metrics).IsZero() {
		return nil
	}
	m := &queueMetrics[T]{
		Metrics:   metrics,
		clock:     c,
		start:     c.Now(),
		quit:      make(chan struct{}),
		mu:        mu,
		startedAt: map[T]time.Duration{},
	}
	if m.Unfinished != nil {
		m.running.Go(m.reportUnfinished)
	}
	return m
}

// now is the time since start.
func (m *queueMetrics[T]) now() time.Duration {
	if m == nil {
		return 0
	}
	return m.clock.Since(m.start)
}

// begin notes that the work on item begins, and returns how long it was dirty. The caller holds mu.
func (m *queueMetrics[T]) begin(item T, e entry, now time.Duration) time.Duration {
	m.startedAt[item] = now
	if !e.dirty { // an owner's Queue may return any item
		return 0
	}
	return max(now-e.addedAt, 0) // Add may have read the clock later
}

// end returns how long a worker had item. The caller holds mu.
func (m *queueMetrics[T]) end(item T, now time.Duration) time.Duration {
	worked := now - m.startedAt[item]
	delete(m.startedAt, item)
	return worked
}

// added, taken and finished report an Add that was not ignored, a Get and a Done. The caller does
// not hold mu.
func (m *queueMetrics[T]) added() {
	if m == nil {
		return
	}
	if m.Adds != nil {
		m.Adds()
	}
	if m.Depth != nil {
		m.Depth(1)
	}
}

func (m *queueMetrics[T]) taken(waited time.Duration) {
	if m.Depth != nil {
		m.Depth(-1)
	}
	if m.Latency != nil {
		m.Latency(waited)
	}
}

func (m *queueMetrics[T]) finished(worked time.Duration) {
	if m != nil && m.WorkDuration != nil {
		m.WorkDuration(worked)
	}
}

// reportUnfinished calls Unfinished every unfinishedPeriod, until stop.
func (m *queueMetrics[T]) reportUnfinished() {
	ticker := m.clock.NewTicker(unfinishedPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C():
			m.Unfinished(m.ages())
		case <-m.quit:
			return
		}
	}
}

// ages returns the sum and the maximum of the times that workers have had their items.
func (m *queueMetrics[T]) ages() (total, longest time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for _, startedAt := range m.startedAt {
		age := now - startedAt
		total += age
		longest = max(longest, age)
	}
	return total, longest
}

// stop returns when the goroutine of startQueueMetrics has ended. It may be called again.
func (m *queueMetrics[T]) stop() {
	if m != nil {
		m.quitOnce.Do(func() { close(m.quit) })
		m.running.Wait()
	}
}

// released calls Released, once.
func (m *queueMetrics[T]) released() {
	if m != nil && m.Released != nil {
		m.releaseOnce.Do(m.Released)
	}
}
