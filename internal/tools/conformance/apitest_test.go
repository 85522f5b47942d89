// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"example.com/informerstack/apitest"
	"example.com/informerstack/internal/tools/conformance"
	"example.com/informerstack/internal/tools/narrate"
)

// apitest gives the answers of the real server.
func TestApitest(t *testing.T) {
	conformance.Run(t, target(t, apitest.Options{
		Scheme: scheme.Scheme, NoShards: true, ManagedFields: true}))
}

// apitest gives the answers of the real server with the feature gate ShardedListAndWatch.
func TestApitest_Sharded(t *testing.T) {
	conformance.RunFolder(t, target(t, apitest.Options{Scheme: scheme.Scheme}), "sharded")
}

// apitest gives the answers of the real server to users with roles.
func TestApitest_Permissions(t *testing.T) {
	conformance.RunFolder(t, target(t, apitest.Options{Scheme: scheme.Scheme, RBAC: true}),
		"permissions")
}

// apitest gives the answers of the real server beside three controllers of a controller manager.
func TestApitest_Collected(t *testing.T) {
	conformance.RunFolder(t, target(t, apitest.Options{Scheme: scheme.Scheme,
		BuiltinRules: true, GarbageCollection: true, RBAC: true}), "collected")
}

// apitest has the defaults of the real server, and refuses what it refuses.
func TestApitest_Rules(t *testing.T) {
	conformance.RunFolder(t, target(t, apitest.Options{Scheme: scheme.Scheme, ManagedFields: true,
		BuiltinRules: true}), "rules")
}

func target(t *testing.T, options apitest.Options) conformance.Target {
	s := apitest.NewServer(options)
	require.NoError(t, s.Start())
	t.Cleanup(s.Close)
	return conformance.Target{
		Variant: "apitest",
		Config:  &rest.Config{Host: s.URL, QPS: -1},
		Expire:  func(*testing.T) { s.Faults().Compact() },
		Folder:  "../../../testdata/conformance",
	}
}

// If apitest's answers differed, -update would record them under a separate heading.
func TestTranscripts_HoldNoDeviation(t *testing.T) {
	files, err := filepath.Glob("../../../testdata/conformance/*.txt")
	require.NoError(t, err)
	special, err := filepath.Glob("../../../testdata/conformance/*/*.txt")
	require.NoError(t, err)
	for _, file := range append(files, special...) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.NotContains(t, string(text), "\n---- apitest", file)
	}
}

// With -v, selected tests print what they show.
func TestMain(m *testing.M) { os.Exit(narrate.Run(m)) }
