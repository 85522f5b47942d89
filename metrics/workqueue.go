// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"example.com/informerstack/workqueue"
)

// queueFamily is component-base's workqueue metrics.
type queueFamily struct {
	family
	depth, unfinished, longestRunning *prometheus.GaugeVec
	adds, retries                     *prometheus.CounterVec
	latency, workDuration             *prometheus.HistogramVec
}

func newQueueFamily() *queueFamily {
	f := &queueFamily{family: newFamily("name")}
	buckets := prometheus.ExponentialBuckets(10e-9, 10, 10)
	f.depth = f.gauge("workqueue_depth", "Items that wait for a worker, or for the Done of the worker that has them")
	f.adds = f.counter("workqueue_adds_total", "Adds that were not ignored")
	f.latency = f.histogram("workqueue_queue_duration_seconds", "Time from Add to Get", buckets)
	f.workDuration = f.histogram("workqueue_work_duration_seconds", "Time from Get to Done", buckets)
	f.unfinished = f.gauge("workqueue_unfinished_work_seconds", "Sum of the ages of all work in progress: if it grows at a rate of n, n workers are stuck")
	f.longestRunning = f.gauge("workqueue_longest_running_processor_seconds", "Age of the oldest work in progress")
	f.retries = f.counter("workqueue_retries_total", "Items that were added for later")
	return f
}

// Workqueue is the MetricsProvider of any number of queues. Queues of one name share their series, which are gone when the
// last of them is shut down.
func (m *Metrics) Workqueue() workqueue.MetricsProvider { return queueProvider{m.queues} }

type queueProvider struct{ *queueFamily }

var _ workqueue.MetricsReleaser = queueProvider{}

// NewDepthMetric implements workqueue.MetricsProvider. It is the first that a queue asks for.
func (p queueProvider) NewDepthMetric(name string) workqueue.GaugeMetric {
	p.acquire(name)
	return p.depth.WithLabelValues(name)
}

// NewAddsMetric implements workqueue.MetricsProvider.
func (p queueProvider) NewAddsMetric(name string) workqueue.CounterMetric {
	return p.adds.WithLabelValues(name)
}

// NewLatencyMetric implements workqueue.MetricsProvider.
func (p queueProvider) NewLatencyMetric(name string) workqueue.HistogramMetric {
	return p.latency.WithLabelValues(name)
}

// NewWorkDurationMetric implements workqueue.MetricsProvider.
func (p queueProvider) NewWorkDurationMetric(name string) workqueue.HistogramMetric {
	return p.workDuration.WithLabelValues(name)
}

// NewUnfinishedWorkSecondsMetric implements workqueue.MetricsProvider.
func (p queueProvider) NewUnfinishedWorkSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return p.unfinished.WithLabelValues(name)
}

// NewLongestRunningProcessorSecondsMetric implements workqueue.MetricsProvider.
func (p queueProvider) NewLongestRunningProcessorSecondsMetric(name string) workqueue.SettableGaugeMetric {
	return p.longestRunning.WithLabelValues(name)
}

// NewRetriesMetric implements workqueue.MetricsProvider. A delaying queue asks for it, beside the queue that it contains.
func (p queueProvider) NewRetriesMetric(name string) workqueue.CounterMetric {
	p.acquire(name)
	return p.retries.WithLabelValues(name)
}

// ReleaseMetrics implements workqueue.MetricsReleaser.
func (p queueProvider) ReleaseMetrics(name string) { p.release(name) }
