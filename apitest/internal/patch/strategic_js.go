// SPDX-License-Identifier: Apache-2.0

package patch

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Strategic refuses the patch. The library for such patches brings an OpenAPI parser, which is too
// large for a program in a browser.
func Strategic(_, _ []byte, _ schema.GroupVersionKind, _ runtime.Object) ([]byte, error) {
	return nil, apierrors.NewBadRequest("strategic merge patches are not supported in a browser")
}
