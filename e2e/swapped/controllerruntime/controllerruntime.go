// SPDX-License-Identifier: Apache-2.0

// Package controllerruntime depends on the library of most operators, so that
// ../controllerruntime_test.go can run its tests; manager is our own operator.
package controllerruntime

import (
	_ "github.com/google/go-cmp/cmp"
	_ "github.com/onsi/ginkgo/v2"
	_ "github.com/onsi/gomega"
	_ "go.uber.org/goleak"
	_ "sigs.k8s.io/controller-runtime"
	_ "sigs.k8s.io/controller-runtime/pkg/envtest"
	_ "sigs.k8s.io/controller-runtime/pkg/log/zap"
	_ "sigs.k8s.io/controller-runtime/pkg/metrics/filters"
)
