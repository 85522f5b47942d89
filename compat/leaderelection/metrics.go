// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"sync/atomic"

	"example.com/informerstack/leaderelection"
)

// LeaderMetric receives whether an elector leads.
type LeaderMetric = leaderelection.LeaderMetric

// MetricsProvider makes the metric of an elector.
//
// Source: tools/leaderelection/metrics.go MetricsProvider
type MetricsProvider interface {
	NewLeaderMetric() LeaderMetric
}

// global is the provider of the process, set by SetProvider.
var global atomic.Pointer[MetricsProvider]

// SetProvider sets the provider of the metrics of electors that are created from now on. Only the
// first call has an effect. It may be called from any goroutine.
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
