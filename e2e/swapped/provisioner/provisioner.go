// SPDX-License-Identifier: Apache-2.0

// Package provisioner depends on the library of external provisioners, the controller of a blog
// post's example, so that ../provisioner_test.go can run its tests.
package provisioner

import (
	_ "sigs.k8s.io/sig-storage-lib-external-provisioner/v13/allocator"
	_ "sigs.k8s.io/sig-storage-lib-external-provisioner/v13/controller"
)
