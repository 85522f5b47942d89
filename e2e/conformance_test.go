// SPDX-License-Identifier: Apache-2.0

// Package e2e runs the informer stack, and the suites that apitest passes, against a real kube-apiserver and etcd.
package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/informerstack/e2e/cluster"
	"example.com/informerstack/internal/conformance"
)

// The transcripts say what this server answers: with -update, it answers anew.
func TestConformance(t *testing.T) {
	c := cluster.New(t, cluster.Options{})
	conformance.Run(t, conformance.Target{
		Variant: conformance.Recorded,
		Config:  c.Config(cluster.AdminToken),
		Expire: func(t *testing.T) {
			require.NoError(t, c.Compact(t.Context()))
			c.KillAPIServer()
			require.NoError(t, c.StartAPIServer(t.Context()))
		},
		Folder: "../testdata/conformance",
	})
}
