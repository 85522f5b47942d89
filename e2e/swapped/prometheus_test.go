// SPDX-License-Identifier: Apache-2.0

package swapped_test

import "testing"

// Prometheus finds its targets with shared informers, and has a queue for each role.
func TestSwapped_Prometheus(t *testing.T) {
	samePasses(t, "prometheus", nil, nil, "github.com/prometheus/prometheus/discovery/kubernetes")
}
