// SPDX-License-Identifier: Apache-2.0

package workqueue

import "example.com/informerstack/compat/internal/provider"

// GaugeMetric goes up and down by one.
type GaugeMetric = provider.GaugeMetric

// SettableGaugeMetric is a number that is set.
type SettableGaugeMetric = provider.SettableGaugeMetric

// CounterMetric only grows.
type CounterMetric = provider.CounterMetric

// SummaryMetric takes single observations.
type SummaryMetric = provider.SummaryMetric

// HistogramMetric counts single observations.
type HistogramMetric = provider.HistogramMetric

// MetricsProvider makes the metrics of the queue called name: see workqueue.Metrics. Durations are
// in seconds. A provider may also have the methods NewWaitingItemsMetric and
// NewLongestWaitSecondsMetric, as the others: they make the metrics of the items that wait.
type MetricsProvider = provider.MetricsProvider

// SetProvider gives the process the provider for queues that have a name and no provider of their
// own. Only the first call counts, for the queues made after it. It may be called from any
// goroutine.
func SetProvider(metricsProvider MetricsProvider) { provider.Set(metricsProvider) }
