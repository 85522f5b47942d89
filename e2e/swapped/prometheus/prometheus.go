// SPDX-License-Identifier: Apache-2.0

// Package prometheus depends on Prometheus's discovery of scrape targets, a controller in the wide
// sense, so that ../prometheus_test.go can run its tests.
package prometheus

import _ "github.com/prometheus/prometheus/discovery/kubernetes"
