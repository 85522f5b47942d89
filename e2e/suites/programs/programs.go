// SPDX-License-Identifier: Apache-2.0

// Package programs depends on public controllers and libraries, so that ../suites_test.go can run
// their tests.
package programs

import (
	_ "github.com/fluxcd/pkg/ssa"
	_ "github.com/openshift/machine-api-operator/pkg/controller/machine"
	_ "github.com/openshift/machine-api-operator/pkg/controller/machineset"
	_ "github.com/ray-project/kuberay/ray-operator/controllers/ray"
	_ "sigs.k8s.io/controller-runtime"
)
