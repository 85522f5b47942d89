// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"sync/atomic"
	"time"

	"example.com/informerstack/workqueue"
)

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

// MetricsProvider makes the metrics of the queue called name: see workqueue.Metrics. Durations are
// in seconds. A provider may also have the methods NewWaitingItemsMetric and
// NewLongestWaitSecondsMetric, as the others: they make the metrics of the items that wait.
type MetricsProvider interface {
	NewDepthMetric(name string) GaugeMetric
	NewAddsMetric(name string) CounterMetric
	NewLatencyMetric(name string) HistogramMetric
	NewWorkDurationMetric(name string) HistogramMetric
	NewUnfinishedWorkSecondsMetric(name string) SettableGaugeMetric
	NewLongestRunningProcessorSecondsMetric(name string) SettableGaugeMetric
	NewRetriesMetric(name string) CounterMetric
}

// waitingProvider is a MetricsProvider with metrics that client-go does not have: the number of
// items that wait in AddAfter, and the seconds until the last of them is due.
type waitingProvider interface {
	NewWaitingItemsMetric(name string) SettableGaugeMetric
	NewLongestWaitSecondsMetric(name string) SettableGaugeMetric
}

// global is the provider of SetProvider.
var global atomic.Pointer[MetricsProvider]

// SetProvider gives the process the provider for queues that have a name and no provider of their
// own. Only the first call counts, for the queues made after it. It may be called from any
// goroutine.
func SetProvider(metricsProvider MetricsProvider) {
	global.CompareAndSwap(nil, &metricsProvider)
}

// providerOf returns provider, or the one of the process. It returns nil if the queue has no name:
// it then has no metrics.
func providerOf(provider MetricsProvider, name string) MetricsProvider {
	set := global.Load()
	switch {
	case name == "":
		return nil
	case provider == nil && set != nil:
		return *set
	}
	return provider
}

// queueMetrics are the metrics of a queue, without those of its delays.
func queueMetrics(provider MetricsProvider, name string) workqueue.Metrics {
	provider = providerOf(provider, name)
	if provider == nil {
		return workqueue.Metrics{}
	}
	depth := provider.NewDepthMetric(name)
	adds := provider.NewAddsMetric(name)
	latency := provider.NewLatencyMetric(name)
	workDuration := provider.NewWorkDurationMetric(name)
	unfinished := provider.NewUnfinishedWorkSecondsMetric(name)
	longestRunning := provider.NewLongestRunningProcessorSecondsMetric(name)
	return workqueue.Metrics{
		Adds: adds.Inc,
		Depth: func(change int) {
			if change > 0 {
				depth.Inc()
			} else {
				depth.Dec()
			}
		},
		Latency:      func(waited time.Duration) { latency.Observe(waited.Seconds()) },
		WorkDuration: func(worked time.Duration) { workDuration.Observe(worked.Seconds()) },
		Unfinished: func(total, longest time.Duration) {
			unfinished.Set(total.Seconds())
			longestRunning.Set(longest.Seconds())
		},
	}
}

// delayMetrics are the metrics of a queue's delays.
func delayMetrics(provider MetricsProvider, name string) workqueue.Metrics {
	provider = providerOf(provider, name)
	if provider == nil {
		return workqueue.Metrics{}
	}
	metrics := workqueue.Metrics{Retries: provider.NewRetriesMetric(name).Inc}
	if provider, ok := provider.(waitingProvider); ok {
		waiting := provider.NewWaitingItemsMetric(name)
		longestWait := provider.NewLongestWaitSecondsMetric(name)
		metrics.Waiting = func(items int, longest time.Duration) {
			waiting.Set(float64(items))
			longestWait.Set(longest.Seconds())
		}
	}
	return metrics
}
