// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// unfinishedWorkPeriod is how often the two gauges of unfinished work are set.
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

// MetricsProvider makes the metrics of the queue called name. Durations are in seconds. The queue calls what it is given
// from any goroutine and under no lock, so that gauges may pass through a value that never was.
type MetricsProvider interface {
	// NewDepthMetric counts the items that wait for a worker, or for the Done of the worker that has them.
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

// MetricsReleaser is a MetricsProvider that wants to know when metrics end.
type MetricsReleaser interface {
	// ReleaseMetrics says that what made metrics for the queue called name is shut down and will not use them any more, but
	// for workers that still finish. A Typed calls it once, for all but the retries; a TypedDelayingQueue once, for those.
	ReleaseMetrics(name string)
}

func releaseMetrics(provider MetricsProvider, name string) {
	if releaser, ok := provider.(MetricsReleaser); ok && name != "" {
		releaser.ReleaseMetrics(name)
	}
}

// queueMetrics reports on one Typed. A queue without metrics has none of it.
type queueMetrics struct {
	depth          GaugeMetric
	adds           CounterMetric
	latency        HistogramMetric
	workDuration   HistogramMetric
	unfinished     SettableGaugeMetric
	longestRunning SettableGaugeMetric

	release func()
	quit    chan struct{}
	once    sync.Once
	running sync.WaitGroup
}

func newQueueMetrics(provider MetricsProvider, name string) *queueMetrics {
	if provider == nil || name == "" {
		return nil
	}
	return &queueMetrics{
		depth:          provider.NewDepthMetric(name),
		adds:           provider.NewAddsMetric(name),
		latency:        provider.NewLatencyMetric(name),
		workDuration:   provider.NewWorkDurationMetric(name),
		unfinished:     provider.NewUnfinishedWorkSecondsMetric(name),
		longestRunning: provider.NewLongestRunningProcessorSecondsMetric(name),
		release:        sync.OnceFunc(func() { releaseMetrics(provider, name) }),
		quit:           make(chan struct{}),
	}
}

func newRetriesMetric(provider MetricsProvider, name string) CounterMetric {
	if provider == nil || name == "" {
		return nil
	}
	return provider.NewRetriesMetric(name)
}

func (m *queueMetrics) added() {
	m.adds.Inc()
	m.depth.Inc()
}

func (m *queueMetrics) taken(waited time.Duration) {
	m.depth.Dec()
	m.latency.Observe(waited.Seconds())
}

func (m *queueMetrics) finished(worked time.Duration) {
	m.workDuration.Observe(worked.Seconds())
}

// start sets the gauges of unfinished work every unfinishedWorkPeriod from what ages reports, until stop.
func (m *queueMetrics) start(c clock.WithTicker, ages func() (total, oldest time.Duration)) {
	m.running.Go(func() {
		ticker := c.NewTicker(unfinishedWorkPeriod)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C():
				total, oldest := ages()
				m.unfinished.Set(total.Seconds())
				m.longestRunning.Set(oldest.Seconds())
			case <-m.quit:
				return
			}
		}
	})
}

// stop returns when the goroutine of start has ended. It may be called again.
func (m *queueMetrics) stop() {
	m.once.Do(func() { close(m.quit) })
	m.running.Wait()
}

// unfinished adds up how long workers have had their items.
func (q *Typed[T]) unfinished() (total, oldest time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	for e := q.working.first; e != nil; e = e.next {
		age := now - e.startedAt
		total += age
		oldest = max(oldest, age)
	}
	return total, oldest
}
