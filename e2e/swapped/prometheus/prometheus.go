// SPDX-License-Identifier: Apache-2.0

// Package prometheus depends on a controller in the wide sense, Prometheus's discovery of what to
// scrape, so that ../prometheus_test.go can run its tests.
package prometheus

import _ "github.com/prometheus/prometheus/discovery/kubernetes"
