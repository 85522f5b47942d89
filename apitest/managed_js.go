// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A program in a browser has no server-side apply, and no managed fields: the schemas of the
// built-in kinds and their library are too large for it.

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
