// SPDX-License-Identifier: Apache-2.0

package conformance

import "testing"

// clientTests are what client-go's own clients must be able to do with a target.
var clientTests = []struct {
	name string
	run  func(t *testing.T, target Target)
}{}
