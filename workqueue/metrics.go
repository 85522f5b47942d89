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
// Adds, Depth, Latency and WorkDuration are called under the queue's lock: they must not call the
// queue, and a slow one delays it.
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
	// Unfinished is called every 500 ms. Its arguments are the sum and the maximum of the times
	// since workers got their items.
	Unfinished func(total, longest time.Duration)
	// Retries is called at each AddAfter, whatever the delay.
	Retries func()
	// Released is called once, when ShutDown or ShutDownWithDrain is about to return. After it the
	// queue calls Metrics only for workers that still finish.
	Released func()
}

// unfinishedPeriod is the time between two calls of Metrics.Unfinished.
const unfinishedPeriod = 500 * time.Millisecond

// queueMetrics measures one Typed for its Metrics. The Typed calls added, taken, finished and
// shrink under its lock; start, stop, shrink and released may be called on nil, which is a Typed
// without Metrics.
type queueMetrics[T comparable] struct {
	Metrics
	clock       clock.WithTicker
	addedAt     map[T]time.Time // of dirty items
	startedAt   map[T]time.Time // of processing items
	releaseOnce sync.Once
	quit        chan struct{}
	quitOnce    sync.Once
	running     sync.WaitGroup
}

// newQueueMetrics returns nil for the zero Metrics.
func newQueueMetrics[T comparable](metrics Metrics, c clock.WithTicker) *queueMetrics[T] {
	if reflect.ValueOf(metrics).IsZero() {
		return nil
	}
	return &queueMetrics[T]{
		Metrics: metrics, clock: c, quit: make(chan struct{}),
		addedAt: map[T]time.Time{}, startedAt: map[T]time.Time{},
	}
}

// start starts a goroutine that calls Unfinished until stop. mu is the lock of the Typed.
func (m *queueMetrics[T]) start(mu *sync.Mutex) {
	if m == nil || m.Unfinished == nil {
		return
	}
	m.running.Go(func() {
		ticker := m.clock.NewTicker(unfinishedPeriod)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C():
				m.Unfinished(m.ages(mu))
			case <-m.quit:
				return
			}
		}
	})
}

// ages returns the sum and the maximum of the times for which workers have had their items.
func (m *queueMetrics[T]) ages(mu *sync.Mutex) (total, longest time.Duration) {
	mu.Lock()
	defer mu.Unlock()
	for _, startedAt := range m.startedAt {
		age := m.clock.Since(startedAt)
		total += age
		longest = max(longest, age)
	}
	return total, longest
}

// added reports an Add that was not ignored.
func (m *queueMetrics[T]) added(item T) {
	m.addedAt[item] = m.clock.Now()
	if m.Adds != nil {
		m.Adds()
	}
	if m.Depth != nil {
		m.Depth(1)
	}
}

// taken reports a Get.
func (m *queueMetrics[T]) taken(item T) {
	now := m.clock.Now()
	waited := now.Sub(m.addedAt[item])
	delete(m.addedAt, item)
	m.startedAt[item] = now
	if m.Depth != nil {
		m.Depth(-1)
	}
	if m.Latency != nil {
		m.Latency(waited)
	}
}

// finished reports a Done.
func (m *queueMetrics[T]) finished(item T) {
	worked := m.clock.Since(m.startedAt[item])
	delete(m.startedAt, item)
	if m.WorkDuration != nil {
		m.WorkDuration(worked)
	}
}

// shrink is called when no item is dirty. A built-in map does not shrink.
func (m *queueMetrics[T]) shrink() {
	if m != nil {
		m.addedAt = map[T]time.Time{}
	}
}

// stop returns when the goroutine of start has ended. It may be called again.
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
