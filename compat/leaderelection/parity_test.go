// SPDX-License-Identifier: Apache-2.0

package leaderelection_test

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/internal/tools/parity"
)

// A program that compiles against client-go's package compiles against this one.
func TestParity(t *testing.T) {
	parity.Check(t, "k8s.io/client-go/tools/leaderelection",
		"example.com/informerstack/compat/leaderelection", map[string]string{
			"v0.37 CandidateConfig":        "v0.38 has it",
			"v0.37 NewCandidateWithConfig": "v0.38 has it",
		})
}

// A client-go that uses these packages compiles only if they import nothing of it that imports
// them.
func TestImports_LeadNowhereBack(t *testing.T) {
	deps, err := exec.Command("go", "list", "-deps", "./...").Output()
	require.NoError(t, err)
	for path := range strings.SplitSeq(string(deps), "\n") {
		for _, forbidden := range []string{"tools/leaderelection", "tools/cache", "tools/watch",
			"informers"} {
			assert.False(t, strings.HasPrefix(path, "k8s.io/client-go/"+forbidden), path)
		}
	}
}
