// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"sync/atomic"

	"example.com/informerstack/leaderelection"
)

// LeaderMetric is told whether an elector leads.
type LeaderMetric = leaderelection.LeaderMetric

// MetricsProvider makes the metric of an elector.
//
// Source: tools/leaderelection/metrics.go MetricsProvider
type MetricsProvider interface {
	NewLeaderMetric() LeaderMetric
}

// global is what SetProvider was given.
var global atomic.Pointer[MetricsProvider]

// SetProvider sets who makes the metrics of the electors that are made from now on. Only the first
// call counts. It may be called from any goroutine.
//
// Source: tools/leaderelection/metrics.go SetProvider
func SetProvider(metricsProvider MetricsProvider) {
	global.CompareAndSwap(nil, &metricsProvider)
}

// newLeaderMetric returns nil if there is no provider.
func newLeaderMetric() LeaderMetric {
	if provider := global.Load(); provider != nil {
		return (*provider).NewLeaderMetric()
	}
	return nil
}
