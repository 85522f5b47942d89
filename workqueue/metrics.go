// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// unfinishedWorkPeriod is the time between two settings of the gauges of unfinished work.
const unfinishedWorkPeriod = 500 * time.Millisecond

// GaugeMetric goes up and down by one.
type GaugeMetric interface {
	Inc()
	Dec()
}

// SettableGaugeMetric is a number that is set.
type SettableGaugeMetric interface {
	Set(float64)
}

// CounterMetric only grows.
type CounterMetric interface {
	Inc()
}

// SummaryMetric takes single observations.
type SummaryMetric interface {
	Observe(float64)
}

// HistogramMetric counts single observations.
type HistogramMetric interface {
	Observe(float64)
}

// MetricsProvider makes the metrics of the queue called name. Durations are in seconds. The queue
// calls its metrics from any goroutine and under no lock, so a gauge may briefly have a value that
// the queue never had.
type MetricsProvider interface {
	// NewDepthMetric counts the items that wait for a worker, or for the Done of the worker that
	// has them.
	NewDepthMetric(name string) GaugeMetric
	// NewAddsMetric counts the Adds that were not ignored.
	NewAddsMetric(name string) CounterMetric
	// NewLatencyMetric observes the time from Add to Get.
	NewLatencyMetric(name string) HistogramMetric
	// NewWorkDurationMetric observes the time from Get to Done.
	NewWorkDurationMetric(name string) HistogramMetric
	// NewUnfinishedWorkSecondsMetric is the sum of the ages of all work in progress.
	NewUnfinishedWorkSecondsMetric(name string) SettableGaugeMetric
	// NewLongestRunningProcessorSecondsMetric is the age of the oldest work in progress.
	NewLongestRunningProcessorSecondsMetric(name string) SettableGaugeMetric
	// NewRetriesMetric counts the calls of AddAfter, whatever the delay.
	NewRetriesMetric(name string) CounterMetric
}

// MetricsReleaser is a MetricsProvider that is notified when metrics are no longer used.
type MetricsReleaser interface {
	// ReleaseMetrics reports that the queue called name is shut down. It will not use its metrics
	// any more, except for workers that still finish. A Typed calls it once, for all metrics but
	// the retries; a TypedDelayingQueue calls it once, for the retries.
	ReleaseMetrics(name string)
}

func releaseMetrics(provider MetricsProvider, name string) {
	if releaser, ok := provider.(MetricsReleaser); ok && name != "" {
		releaser.ReleaseMetrics(name)
	}
}

// queueMetrics reports on one Typed. A queue without metrics has none.
type queueMetrics[T comparable] struct {
	depth          GaugeMetric
	adds           CounterMetric
	latency        HistogramMetric
	workDuration   HistogramMetric
	unfinished     SettableGaugeMetric
	longestRunning SettableGaugeMetric

	clock       clock.WithTicker
	start       time.Time // other times are durations since start
	releaseOnce func()
	quit        chan struct{}
	quitOnce    sync.Once
	running     sync.WaitGroup

	mu        *sync.Mutex         // the Typed's
	startedAt map[T]time.Duration // of the items that are processing
}

// startQueueMetrics returns nil if there is no provider or no name. Otherwise it starts the
// goroutine that stop ends.
func startQueueMetrics[T comparable](
	provider MetricsProvider, name string, c clock.WithTicker, mu *sync.Mutex,
) *queueMetrics[T] {
	if provider == nil || name == "" {
		return nil
	}
	m := &queueMetrics[T]{
		depth:          provider.NewDepthMetric(name),
		adds:           provider.NewAddsMetric(name),
		latency:        provider.NewLatencyMetric(name),
		workDuration:   provider.NewWorkDurationMetric(name),
		unfinished:     provider.NewUnfinishedWorkSecondsMetric(name),
		longestRunning: provider.NewLongestRunningProcessorSecondsMetric(name),
		clock:          c,
		start:          c.Now(),
		releaseOnce:    sync.OnceFunc(func() { releaseMetrics(provider, name) }),
		quit:           make(chan struct{}),
		mu:             mu,
		startedAt:      map[T]time.Duration{},
	}
	m.running.Go(m.reportUnfinished)
	return m
}

func newRetriesMetric(provider MetricsProvider, name string) CounterMetric {
	if provider == nil || name == "" {
		return nil
	}
	return provider.NewRetriesMetric(name)
}

// now is the time since start.
func (m *queueMetrics[T]) now() time.Duration {
	return m.clock.Since(m.start)
}

// begin notes that the work on item begins, and returns how long it was dirty. The caller holds mu.
func (m *queueMetrics[T]) begin(item T, e entry, now time.Duration) time.Duration {
	m.startedAt[item] = now
	if !e.dirty { // an owner's Queue may return any item
		return 0
	}
	return now - e.addedAt
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
	m.adds.Inc()
	m.depth.Inc()
}

func (m *queueMetrics[T]) taken(waited time.Duration) {
	m.depth.Dec()
	m.latency.Observe(waited.Seconds())
}

func (m *queueMetrics[T]) finished(worked time.Duration) {
	m.workDuration.Observe(worked.Seconds())
}

// reportUnfinished sets the gauges of unfinished work every unfinishedWorkPeriod, until stop.
func (m *queueMetrics[T]) reportUnfinished() {
	ticker := m.clock.NewTicker(unfinishedWorkPeriod)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C():
			total, oldest := m.ages()
			m.unfinished.Set(total.Seconds())
			m.longestRunning.Set(oldest.Seconds())
		case <-m.quit:
			return
		}
	}
}

// ages returns the sum and the maximum of the times that workers have had their items.
func (m *queueMetrics[T]) ages() (total, oldest time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	for _, startedAt := range m.startedAt {
		age := now - startedAt
		total += age
		oldest = max(oldest, age)
	}
	return total, oldest
}

// stop returns when the goroutine of startQueueMetrics has ended. It may be called again, and for a
// queue without metrics.
func (m *queueMetrics[T]) stop() {
	if m != nil {
		m.quitOnce.Do(func() { close(m.quit) })
		m.running.Wait()
	}
}

// release gives the metrics back to the provider, once. It may be called for a queue without
// metrics.
func (m *queueMetrics[T]) release() {
	if m != nil {
		m.releaseOnce()
	}
}
