// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/internal/tools/parity"
)

// A program that compiles against client-go's package compiles against this one.
func TestParity(t *testing.T) {
	known := map[string]string{}
	for _, field := range []string{"Logger", "Name", "MetricsProvider", "Clock", "DelayingQueue"} {
		for _, version := range []string{"v0.36", "v0.37"} {
			known[version+" TypedRateLimitingQueueConfig."+field] = "v0.38 has Logger before it"
		}
	}
	parity.Check(t, "k8s.io/client-go/util/workqueue",
		"example.com/informerstack/compat/workqueue", known)
}

// client-go's own transport uses a workqueue. A client-go that uses this one compiles only if this
// one uses nothing of client-go.
func TestImports_NothingOfClientGo(t *testing.T) {
	deps, err := exec.Command("go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	assert.NotContains(t, string(deps), "k8s.io/client-go")
}
