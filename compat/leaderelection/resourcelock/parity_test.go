// SPDX-License-Identifier: Apache-2.0

package resourcelock_test

import (
	"testing"

	"example.com/informerstack/internal/tools/parity"
)

// A program that compiles against client-go's package compiles against this one.
func TestParity(t *testing.T) {
	parity.Check(t, "k8s.io/client-go/tools/leaderelection/resourcelock",
		"example.com/informerstack/compat/leaderelection/resourcelock", nil)
}
