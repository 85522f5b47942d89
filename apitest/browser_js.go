// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A program in a browser has no actions, no permissions, no admission, no server-side apply and no
// managed fields: their Go types, schemas and libraries are too large for it.

// AdmissionHook is not asked in a browser.
type AdmissionHook struct{}

type review struct{}

func (*call) review(runtime.Object, []string) *review { return nil }

func (*Server) reviewedDeleteLocked(_, _ target, _ *metav1.DeleteOptions, _ *review) error {
	return nil
}

func (*Server) mutatedLocked(_ target, obj *object, _ *version, _ write) (*object, error) {
	return obj, nil
}

func (*Server) validatedLocked(target, *object, *version, write) error { return nil }

type action struct {
	subresource string
	body        *Resource
}

const userTable = ""

func (*Resource) actions() []*action { return nil }

func (*Resource) action(string) *action { return nil }

func (*call) act(*action) error { return nil }

func (*call) permit() error { return nil }

func (*call) mayCreateLocked() error { return nil }

func (*call) byUserLocked(_, _ *object) error { return nil }

func keepRequest(_, _ *object, _ string) {}

func (*Server) createRoles() {}

func (*Server) aggregateLocked(*collection) {}

type typeConverter = any

func builtinTypes() (typeConverter, error) { return nil, nil }

const definitionFields = ""

func customTypes(schema.GroupKind, map[string]string) func() (typeConverter, error) {
	return builtinTypes
}

func (*Server) track(target, *object, *object, write) {}

func (*call) merge(*version, []byte, *metav1.PatchOptions) ([]byte, error) {
	return nil, apierrors.NewBadRequest("server-side apply is not supported in a browser")
}

func (target) scaleManagers(*object) ([]metav1.ManagedFieldsEntry, error) { return nil, nil }

func (target) managersOfScale(_, _ *object) ([]metav1.ManagedFieldsEntry, error) { return nil, nil }

func keepTimes(*object, *version) {}
