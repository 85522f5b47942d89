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
type queueMetrics struct {
	Metrics
	clock       clock.WithTicker
	epoch       time.Time // other times are durations since epoch
	releaseOnce sync.Once
	quit        chan struct{}
	quitOnce    sync.Once
	running     sync.WaitGroup
}

// newQueueMetrics returns nil for the zero Metrics.
func newQueueMetrics(metrics Metrics, c clock.WithTicker) *queueMetrics {
	if reflect.ValueOf(metrics).IsZero() {
		return nil
	}
	return &queueMetrics{Metrics: metrics, clock: c, epoch: c.Now(), quit: make(chan struct{})}
}

// start starts a goroutine that calls Unfinished with ages, until stop.
func (m *queueMetrics) start(ages func(now time.Duration) (total, longest time.Duration)) {
	if m.Unfinished == nil {
		return
	}
	m.running.Go(func() {
		ticker := m.clock.NewTicker(unfinishedPeriod)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C():
				m.Unfinished(ages(m.now()))
			case <-m.quit:
				return
			}
		}
	})
}

// now is the time since epoch.
func (m *queueMetrics) now() time.Duration {
	if m == nil {
		return 0
	}
	return m.clock.Since(m.epoch)
}

// added, taken and finished report an Add that was not ignored, a Get and a Done. The caller does
// not hold mu.
func (m *queueMetrics) added() {
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

func (m *queueMetrics) taken(waited time.Duration) {
	if m.Depth != nil {
		m.Depth(-1)
	}
	if m.Latency != nil {
		m.Latency(waited)
	}
}

func (m *queueMetrics) finished(worked time.Duration) {
	if m != nil && m.WorkDuration != nil {
		m.WorkDuration(worked)
	}
}

// stop returns when the goroutine of start has ended. It may be called again.
func (m *queueMetrics) stop() {
	if m != nil {
		m.quitOnce.Do(func() { close(m.quit) })
		m.running.Wait()
	}
}

// released calls Released, once.
func (m *queueMetrics) released() {
	if m != nil && m.Released != nil {
		m.releaseOnce.Do(m.Released)
	}
}
