// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"sync/atomic"
	"time"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// HistogramMetric counts observations by size.
type HistogramMetric interface {
	Observe(float64)
}

// GaugeMetric is a value that rises and falls.
type GaugeMetric interface {
	Set(float64)
}

// CounterMetric is a value that only rises.
type CounterMetric interface {
	Inc()
}

// SummaryMetric collects single observations.
type SummaryMetric interface {
	Observe(float64)
}

// MetricsProvider makes the metrics of the reflector called name. A metric may be nil. Durations
// are in seconds.
//
// Source: tools/cache/reflector_metrics.go MetricsProvider
type MetricsProvider interface {
	// NewListsMetric counts LISTs, whole ones, not pages.
	NewListsMetric(name string) CounterMetric
	// NewListDurationMetric observes how long each LIST took.
	NewListDurationMetric(name string) SummaryMetric
	// NewItemsInListMetric observes how many objects each LIST returned.
	NewItemsInListMetric(name string) SummaryMetric

	// NewWatchesMetric counts the watches that were opened, streaming lists included.
	NewWatchesMetric(name string) CounterMetric
	// NewShortWatchesMetric counts the watches that were over within a second, without an event.
	NewShortWatchesMetric(name string) CounterMetric
	// NewWatchDurationMetric observes how long each watch stayed open.
	NewWatchDurationMetric(name string) SummaryMetric
	// NewItemsInWatchMetric observes how many events each watch brought.
	NewItemsInWatchMetric(name string) SummaryMetric

	// NewLastResourceVersionMetric is set to the last 15 digits of the resourceVersion that the
	// store has reached.
	NewLastResourceVersionMetric(name string) GaugeMetric
}

// InformerMetricsProvider makes the metrics of informers' queues and stores. A metric should look
// at id.Reserved() before it records anything: an informer may end before the process does.
//
// Source: tools/cache/informer_metrics.go InformerMetricsProvider
type InformerMetricsProvider interface {
	// NewQueuedItemMetric is set to how many keys wait in a DeltaFIFO, or how many deltas in a
	// RealFIFO.
	NewQueuedItemMetric(id InformerNameAndResource) GaugeMetric
	// NewProcessingLatencyMetric observes how long what was popped took to process, in seconds.
	NewProcessingLatencyMetric(id InformerNameAndResource) HistogramMetric
	// NewStoreResourceVersionMetric is set to the last 15 digits of the resourceVersion that the
	// store has reached.
	NewStoreResourceVersionMetric(id InformerNameAndResource) GaugeMetric
}

// The providers of the process. A pointer to an interface, as an atomic holds one type only.
var (
	reflectorMetricsProvider atomic.Pointer[MetricsProvider]
	informerMetricsProvider  atomic.Pointer[InformerMetricsProvider]
)

// SetReflectorMetricsProvider sets the provider of the metrics of each reflector that runs from now
// on. Only the first call counts.
//
// Source: tools/cache/reflector_metrics.go SetReflectorMetricsProvider
func SetReflectorMetricsProvider(metricsProvider MetricsProvider) {
	reflectorMetricsProvider.CompareAndSwap(nil, &metricsProvider)
}

// SetInformerMetricsProvider sets the provider of the metrics of queues and stores that are made
// from now on without a provider of their own. Only the first call counts.
//
// Source: tools/cache/informer_metrics.go SetInformerMetricsProvider
func SetInformerMetricsProvider(metricsProvider InformerMetricsProvider) {
	informerMetricsProvider.CompareAndSwap(nil, &metricsProvider)
}

// reflectorMetrics makes the metrics of the reflector called name.
func reflectorMetrics(name string) reflector.Metrics {
	provider := reflectorMetricsProvider.Load()
	if provider == nil || *provider == nil {
		return reflector.Metrics{}
	}
	p := *provider
	m := reflector.Metrics{
		Lists:         inc(p.NewListsMetric(name)),
		ListDuration:  observeSeconds(p.NewListDurationMetric(name)),
		ItemsInList:   observeCount(p.NewItemsInListMetric(name)),
		Watches:       inc(p.NewWatchesMetric(name)),
		ShortWatches:  inc(p.NewShortWatchesMetric(name)),
		WatchDuration: observeSeconds(p.NewWatchDurationMetric(name)),
		ItemsInWatch:  observeCount(p.NewItemsInWatchMetric(name)),
	}
	if gauge := p.NewLastResourceVersionMetric(name); gauge != nil {
		m.LastResourceVersion = gauge.Set
	}
	return m
}

func inc(metric CounterMetric) func() {
	if metric == nil {
		return nil
	}
	return metric.Inc
}

func observeSeconds(metric SummaryMetric) func(time.Duration) {
	if metric == nil {
		return nil
	}
	return func(d time.Duration) { metric.Observe(d.Seconds()) }
}

func observeCount(metric SummaryMetric) func(int) {
	if metric == nil {
		return nil
	}
	return func(n int) { metric.Observe(float64(n)) }
}

// informerMetrics returns the provider of the metrics for id, or nil if id has no metrics.
func informerMetrics(
	id InformerNameAndResource, provider InformerMetricsProvider,
) InformerMetricsProvider {
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
