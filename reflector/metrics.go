// SPDX-License-Identifier: Apache-2.0

package reflector

import (
	"strconv"
	"time"
)

// GaugeMetric is a value that goes up and down.
type GaugeMetric interface{ Set(float64) }

// CounterMetric is a value that only goes up.
type CounterMetric interface{ Inc() }

// SummaryMetric collects single observations.
type SummaryMetric interface{ Observe(float64) }

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

// metrics calls the hooks of a MetricsProvider; its zero value calls nothing.
type metrics struct {
	lists, watches, shortWatches CounterMetric
	listDuration, itemsInList    SummaryMetric
	watchDuration, itemsInWatch  SummaryMetric
	lastResourceVersion          GaugeMetric
}

func newMetrics(p MetricsProvider, name string) metrics {
	if p == nil {
		return metrics{}
	}
	return metrics{
		lists:               p.NewListsMetric(name),
		listDuration:        p.NewListDurationMetric(name),
		itemsInList:         p.NewItemsInListMetric(name),
		watches:             p.NewWatchesMetric(name),
		shortWatches:        p.NewShortWatchesMetric(name),
		watchDuration:       p.NewWatchDurationMetric(name),
		itemsInWatch:        p.NewItemsInWatchMetric(name),
		lastResourceVersion: p.NewLastResourceVersionMetric(name),
	}
}

func inc(m CounterMetric) {
	if m != nil {
		m.Inc()
	}
}

func observe(m SummaryMetric, v float64) {
	if m != nil {
		m.Observe(v)
	}
}

func (m *metrics) watchEnded(lasted time.Duration, events int) {
	observe(m.watchDuration, lasted.Seconds())
	observe(m.itemsInWatch, float64(events))
	if events == 0 && lasted < veryShortWatch {
		inc(m.shortWatches)
	}
}

// reached notes a resourceVersion. A float64 holds 15 digits exactly, and it is the last ones that
// move.
func (m *metrics) reached(resourceVersion string) {
	if m.lastResourceVersion == nil {
		return
	}
	if len(resourceVersion) > 15 {
		resourceVersion = resourceVersion[len(resourceVersion)-15:]
	}
	if v, err := strconv.ParseFloat(resourceVersion, 64); err == nil {
		m.lastResourceVersion.Set(v)
	}
}
