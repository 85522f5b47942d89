// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// accept checks an object by the rules of its kind, and gives it the form that is stored. old is
// the object that it replaces, or nil.
func (r *Resource) accept(obj, old *object, subresource string) error {
	errs := r.validateMeta(obj, old)
	if r.rules != nil && subresource != "binding" { // it sets the node of a pod, as no update can
		errs = append(errs, r.rules.Validate(obj.content(), old.content(), subresource)...)
	}
	if r.isDefinitions() {
		errs = append(errs, validateDefinitionName(obj)...)
	}
	if r.schema != nil {
		errs = append(errs, r.schema.Validate(obj.content(), old.content(), subresource)...)
	}
	errs = append(errs, r.validateScale(obj, subresource)...)
	if len(errs) > 0 {
		return apierrors.NewInvalid(r.GroupVersionKind().GroupKind(), obj.meta.Name, errs)
	}
	return r.family.stored.conform(obj, true)
}

// validateMeta checks an object's metadata, and compares it with the old object's if that is not
// nil. As from the real server, an error of a custom kind's update is reported twice.
func (r *Resource) validateMeta(obj, old *object) field.ErrorList {
	at := field.NewPath("metadata")
	errs := validation.ValidateObjectMeta(&obj.meta, r.Namespaced, r.validateName, at)
	if r.builtin && !r.anyFinalizer {
		errs = append(errs, plainFinalizers(obj.meta.Finalizers, at.Child("finalizers"))...)
	}
	if old != nil {
		errs = append(errs, validation.ValidateObjectMetaUpdate(&obj.meta, &old.meta, at)...)
		if !r.builtin {
			errs = append(errs, errs...)
		}
	}
	return errs
}

// plainFinalizers reports the finalizers without a domain that Kubernetes does not have.
func plainFinalizers(finalizers []string, at *field.Path) (errs field.ErrorList) {
	standard := []string{namespaceFinalizer, metav1.FinalizerOrphanDependents,
		metav1.FinalizerDeleteDependents}
	for i, f := range finalizers {
		if !strings.Contains(f, "/") && !slices.Contains(standard, f) {
			errs = append(errs, field.Invalid(at.Index(i), f,
				"name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

func (r *Resource) validateName(name string, prefix bool) []string {
	switch r.name {
	case labelName:
		return validation.NameIsDNSLabel(name, prefix)
	case dns1035Name:
		return validation.NameIsDNS1035Label(name, prefix)
	case pathSegmentName:
		//lint:ignore SA1019 what it should be replaced by is a copy of it
		return path.ValidatePathSegmentName(name, prefix)
	}
	return validation.NameIsDNSSubdomain(name, prefix)
}
