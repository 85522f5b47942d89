// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/informerstack/workqueue"
)

// queueFamily is component-base's workqueue metrics, and those of the items that wait.
type queueFamily struct {
	family
	depth, unfinished, longestRunning *prometheus.GaugeVec
	waiting, longestWait              *prometheus.GaugeVec
	adds, retries                     *prometheus.CounterVec
	latency, workDuration             *prometheus.HistogramVec
}

func newQueueFamily() *queueFamily {
	f := &queueFamily{family: newFamily("name")}
	buckets := prometheus.ExponentialBuckets(10e-9, 10, 10)
	f.depth = f.gauge("workqueue_depth",
		"Items that wait for a worker, or for the Done of the worker that has them")
	f.adds = f.counter("workqueue_adds_total", "Adds that were not ignored")
	f.latency = f.histogram("workqueue_queue_duration_seconds", "Time from Add to Get", buckets)
	f.workDuration = f.histogram(
		"workqueue_work_duration_seconds",
		"Time from Get to Done",
		buckets,
	)
	f.unfinished = f.gauge("workqueue_unfinished_work_seconds",
		"Sum of the ages of all work in progress: if it grows at a rate of n, "+
			"n workers are stuck")
	f.longestRunning = f.gauge("workqueue_longest_running_processor_seconds",
		"Age of the oldest work in progress")
	f.retries = f.counter("workqueue_retries_total", "Items that were added for later")
	f.waiting = f.gauge("workqueue_waiting_items", "Items that were added for later and wait")
	f.longestWait = f.gauge("workqueue_longest_wait_seconds",
		"Time until the last of the waiting items is due")
	return f
}

// Workqueue returns the Metrics of a queue called name. Queues of one name share their series,
// which end when the last of them is shut down.
//
// Each queue needs Metrics of its own: call Workqueue once for each queue.
func (m *Metrics) Workqueue(name string) workqueue.Metrics {
	f := m.queues
	f.acquire(name)
	depth := f.depth.WithLabelValues(name)
	latency := f.latency.WithLabelValues(name)
	workDuration := f.workDuration.WithLabelValues(name)
	unfinished := f.unfinished.WithLabelValues(name)
	longestRunning := f.longestRunning.WithLabelValues(name)
	waiting, longestWait := f.waiting.WithLabelValues(name), f.longestWait.WithLabelValues(name)
	return workqueue.Metrics{
		Adds:         f.adds.WithLabelValues(name).Inc,
		Depth:        func(change int) { depth.Add(float64(change)) },
		Latency:      func(waited time.Duration) { latency.Observe(waited.Seconds()) },
		WorkDuration: func(worked time.Duration) { workDuration.Observe(worked.Seconds()) },
		Unfinished: func(total, longest time.Duration) {
			unfinished.Set(total.Seconds())
			longestRunning.Set(longest.Seconds())
		},
		Waiting: func(items int, longest time.Duration) {
			waiting.Set(float64(items))
			longestWait.Set(longest.Seconds())
		},
		Retries:  f.retries.WithLabelValues(name).Inc,
		Released: func() { f.release(name) },
	}
}
