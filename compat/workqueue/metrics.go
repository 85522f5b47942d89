// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"sync/atomic"

	"example.com/informerstack/workqueue"
)

// GaugeMetric goes up and down by one.
type GaugeMetric = workqueue.GaugeMetric

// SettableGaugeMetric is a number that is set.
type SettableGaugeMetric = workqueue.SettableGaugeMetric

// CounterMetric only grows.
type CounterMetric = workqueue.CounterMetric

// SummaryMetric takes single observations.
type SummaryMetric = workqueue.SummaryMetric

// HistogramMetric counts single observations.
type HistogramMetric = workqueue.HistogramMetric

// MetricsProvider makes the metrics of the queue called name.
type MetricsProvider = workqueue.MetricsProvider

// global is what SetProvider was given.
var global atomic.Pointer[MetricsProvider]

// SetProvider gives the process the provider for queues that have a name and no provider of their
// own. Only the first call counts, for the queues made after it. It may be called from any
// goroutine.
func SetProvider(metricsProvider MetricsProvider) {
	global.CompareAndSwap(nil, &metricsProvider)
}

// orGlobal is provider, or that of the process, or nil.
func orGlobal(provider MetricsProvider) MetricsProvider {
	if set := global.Load(); provider == nil && set != nil {
		return *set
	}
	return provider
}
