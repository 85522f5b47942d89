// SPDX-License-Identifier: Apache-2.0

// Package objects answers questions about objects of an unknown type.
//
// Read this file; then go test ./internal/helpers/objects. Goroutines: none. Locking: none.
package objects

import (
	"fmt"
	"reflect"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// IsNil reports whether obj is nil, or a nil pointer in an interface.
func IsNil(obj any) bool {
	if obj == nil {
		return true
	}
	v := reflect.ValueOf(obj)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// IsSecret reports whether obj is a Secret, or may be one: a server sends the metadata of all
// objects without their kind. It looks at the type as well: an object of a typed client has no
// kind.
func IsSecret(obj any) bool {
	object, ok := obj.(runtime.Object)
	if !ok || IsNil(obj) {
		return false
	}
	kind := object.GetObjectKind().GroupVersionKind().GroupKind()
	if _, partial := obj.(*metav1.PartialObjectMetadata); partial &&
		(kind.Kind == "" || kind.Kind == "PartialObjectMetadata") {
		return true
	}
	return kind == schema.GroupKind{Kind: "Secret"} || fmt.Sprintf("%T", obj) == "*v1.Secret"
}

// Meta returns the metadata of obj. It fails for a nil pointer.
func Meta(obj any) (metav1.Object, error) {
	m, err := meta.Accessor(obj)
	if v := reflect.ValueOf(obj); err == nil && v.Kind() == reflect.Pointer && v.IsNil() {
		err = fmt.Errorf("%T is nil", obj)
	}
	if err != nil {
		return nil, fmt.Errorf("object has no meta: %w", err)
	}
	return m, nil
}

// A float64 holds every integer below 2^53 exactly, so any integer of 15 digits.
const exactDigits = 15

// VersionNumber is the number in the last 15 characters of resourceVersion, for a metric, or false
// if they are not all digits.
func VersionNumber(resourceVersion string) (number float64, ok bool) {
	last := resourceVersion[max(0, len(resourceVersion)-exactDigits):]
	n, err := strconv.ParseUint(last, 10, 64)
	return float64(n), err == nil
}

// SameVersion reports whether two objects that have the same key are one version of one object:
// they are the same pointer, or have the same resourceVersion. Objects without a resourceVersion
// may differ, so they are not the same version.
func SameVersion(oldObj, newObj any) bool {
	v := reflect.ValueOf(oldObj)
	if v.Kind() == reflect.Pointer && !v.IsNil() && oldObj == newObj {
		return true
	}
	older, err := Meta(oldObj)
	if err != nil {
		return false
	}
	newer, err := Meta(newObj)
	return err == nil && newer.GetResourceVersion() != "" &&
		older.GetResourceVersion() == newer.GetResourceVersion()
}
