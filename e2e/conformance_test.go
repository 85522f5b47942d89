// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"example.com/informerstack/e2e/cluster"
	"example.com/informerstack/internal/conformance"
)

// The transcripts say what this server answers: with -update, it answers anew.
func TestConformance(t *testing.T) {
	conformance.Run(t, conformance.Target{
		Variant: conformance.Recorded,
		Config:  shared.Config(cluster.AdminToken),
		Expire:  forget,
		Folder:  "../testdata/conformance",
	})
}
