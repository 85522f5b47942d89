// SPDX-License-Identifier: Apache-2.0

package synctrack_test

import (
	"testing"

	"example.com/informerstack/internal/tools/parity"
)

// A program that compiles against client-go's package compiles against this one.
func TestParity(t *testing.T) {
	parity.Check(t, "k8s.io/client-go/tools/cache/synctrack",
		"example.com/informerstack/compat/cache/synctrack", nil)
}
