// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"sync/atomic"
	"time"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// Metrics of one thing each. The first three are of package reflector.
type (
	// GaugeMetric is a value that goes up and down.
	GaugeMetric = reflector.GaugeMetric
	// CounterMetric is a value that only goes up.
	CounterMetric = reflector.CounterMetric
	// SummaryMetric collects single observations.
	SummaryMetric = reflector.SummaryMetric
	// HistogramMetric counts observations by size.
	HistogramMetric interface{ Observe(float64) }

	// MetricsProvider makes the metrics of reflectors.
	MetricsProvider = reflector.MetricsProvider
)

// InformerMetricsProvider makes the metrics of informers' queues and stores. A metric should look at id.Reserved() before
// it records anything: an informer may end before the process does.
//
// Source: tools/cache/informer_metrics.go InformerMetricsProvider
type InformerMetricsProvider interface {
	// NewQueuedItemMetric is set to how many keys wait in a DeltaFIFO, or how many deltas in a RealFIFO.
	NewQueuedItemMetric(id InformerNameAndResource) GaugeMetric
	// NewProcessingLatencyMetric observes how long what was popped took to process, in seconds.
	NewProcessingLatencyMetric(id InformerNameAndResource) HistogramMetric
	// NewStoreResourceVersionMetric is set to the last 15 digits of the resourceVersion that the store has reached.
	NewStoreResourceVersionMetric(id InformerNameAndResource) GaugeMetric
}

// The providers of the process. A pointer to an interface, as an atomic holds one type only.
var (
	reflectorMetricsProvider atomic.Pointer[MetricsProvider]
	informerMetricsProvider  atomic.Pointer[InformerMetricsProvider]
)

// SetReflectorMetricsProvider sets who makes the metrics of each reflector that runs from now on. Only the first call
// counts.
//
// Source: tools/cache/reflector_metrics.go SetReflectorMetricsProvider
func SetReflectorMetricsProvider(metricsProvider MetricsProvider) {
	reflectorMetricsProvider.CompareAndSwap(nil, &metricsProvider)
}

// SetInformerMetricsProvider sets who makes the metrics of what is made from now on without a provider of its own. Only
// the first call counts.
//
// Source: tools/cache/informer_metrics.go SetInformerMetricsProvider
func SetInformerMetricsProvider(metricsProvider InformerMetricsProvider) {
	informerMetricsProvider.CompareAndSwap(nil, &metricsProvider)
}

func reflectorMetrics() MetricsProvider {
	if provider := reflectorMetricsProvider.Load(); provider != nil {
		return *provider
	}
	return nil
}

// informerMetrics is who makes the metrics for id, or nil if it has none.
func informerMetrics(id InformerNameAndResource, provider InformerMetricsProvider) InformerMetricsProvider {
	if !id.Reserved() {
		return nil
	}
	if provider != nil {
		return provider
	}
	if global := informerMetricsProvider.Load(); global != nil {
		return *global
	}
	return nil
}

func queueMetrics(
	id InformerNameAndResource, provider InformerMetricsProvider,
) (metrics deltafifo.Metrics) {
	provider = informerMetrics(id, provider)
	if provider == nil {
		return metrics
	}
	if queued := provider.NewQueuedItemMetric(id); queued != nil {
		metrics.Depth = func(n int) { queued.Set(float64(n)) }
	}
	if latency := provider.NewProcessingLatencyMetric(id); latency != nil {
		metrics.Latency = func(d time.Duration) { latency.Observe(d.Seconds()) }
	}
	return metrics
}

func storeMetrics(id InformerNameAndResource, provider InformerMetricsProvider) store.Metrics {
	provider = informerMetrics(id, provider)
	if provider == nil {
		return store.Metrics{}
	}
	return store.Metrics{ResourceVersion: provider.NewStoreResourceVersionMetric(id).Set}
}
