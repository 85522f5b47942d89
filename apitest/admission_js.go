// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A program in a browser has no admission: its Go types are too large for it.

// AdmissionHook is not asked in a browser.
type AdmissionHook struct{}

type review struct{}

func (*call) review(runtime.Object, []string) *review { return nil }

func (*Server) reviewedDeleteLocked(_, _ target, _ *metav1.DeleteOptions, _ *review) error {
	return nil
}

func (*Server) mutatedNew(_ target, obj *object, _ write) (*object, error) { return obj, nil }

func (*Server) validatedNewLocked(target, *object, write) error { return nil }

func (*Server) mutatedLocked(_ target, obj *object, _ *version, _ write) (*object, error) {
	return obj, nil
}

func (*Server) validatedLocked(target, *object, *version, write) error { return nil }
