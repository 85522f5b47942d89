// SPDX-License-Identifier: Apache-2.0

package workqueue_test

import (
	"testing"

	"example.com/informerstack/internal/parity"
)

// A program that compiles against client-go's package compiles against this one.
func TestParity(t *testing.T) {
	parity.Check(t, "k8s.io/client-go/util/workqueue", "example.com/informerstack/compat/workqueue", nil)
}
