// SPDX-License-Identifier: Apache-2.0

package apitest

import apierrors "k8s.io/apimachinery/pkg/api/errors"

// strategicPatch refuses the patch. The library for such patches brings an OpenAPI parser, which is
// too large for a program in a browser.
func (*call) strategicPatch(_, _ []byte) ([]byte, error) {
	return nil, apierrors.NewBadRequest("strategic merge patches are not supported in a browser")
}
