// SPDX-License-Identifier: Apache-2.0

package decode

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// A type with a decoder of its own may keep the bytes that it gets, or write into them. But a
// frame's buffer is used again for the next frame, and a second decoder may need its bytes. So such
// a type gets a copy. The types of Kubernetes and of Go's library copy what they keep.

// copying are the types with UnmarshalJSON or UnmarshalText that copy what they keep.
var copying = map[reflect.Type]bool{
	reflect.TypeFor[metav1.Time]():               true,
	reflect.TypeFor[metav1.MicroTime]():          true,
	reflect.TypeFor[metav1.Duration]():           true,
	reflect.TypeFor[metav1.FieldsV1]():           true,
	reflect.TypeFor[resource.Quantity]():         true,
	reflect.TypeFor[intstr.IntOrString]():        true,
	reflect.TypeFor[runtime.RawExtension]():      true,
	reflect.TypeFor[unstructured.Unstructured](): true,
	reflect.TypeFor[json.RawMessage]():           true,
	reflect.TypeFor[time.Time]():                 true,
}

// mayKeepJSON reports whether decoding JSON into t may call code that keeps the bytes or changes
// them.
func mayKeepJSON(t reflect.Type) bool {
	return anyType(t, map[reflect.Type]bool{}, func(t reflect.Type) (found, deeper bool) {
		if copying[t] {
			return false, false
		}
		// An interface may hold a pointer to anything before the decoding.
		return t.Kind() == reflect.Interface || HasUnmarshaler(t), true
	})
}

// mayKeepProtobuf is mayKeepJSON for protobuf. The generated code of a type calls that of the types
// in it.
func mayKeepProtobuf(t reflect.Type) bool {
	return anyType(t, map[reflect.Type]bool{}, func(t reflect.Type) (found, deeper bool) {
		return decodesProtobuf(t), true
	})
}

// isForeign reports whether t itself has a decoder that may not be one of Kubernetes.
func isForeign(t reflect.Type) bool {
	return HasUnmarshaler(t) || decodesProtobuf(t)
}

// decodesProtobuf reports whether t has a decoder for protobuf that is not one of Kubernetes.
func decodesProtobuf(t reflect.Type) bool {
	_, decodes := reflect.Zero(reflect.PointerTo(t)).Interface().(protobufObject)
	return decodes && !strings.HasPrefix(t.PkgPath(), "k8s.io/")
}

// anyType reports whether is returns found for t or one of the types in it. It does not look into
// types for which is does not return deeper.
func anyType(
	t reflect.Type, seen map[reflect.Type]bool, is func(reflect.Type) (found, deeper bool),
) bool {
	if seen[t] {
		return false
	}
	seen[t] = true
	found, deeper := is(t)
	if found || !deeper {
		return found
	}
	switch t.Kind() {
	case reflect.Map:
		return anyType(t.Key(), seen, is) || anyType(t.Elem(), seen, is)
	case reflect.Pointer, reflect.Slice, reflect.Array:
		return anyType(t.Elem(), seen, is)
	case reflect.Struct:
		for i := range t.NumField() {
			if anyType(t.Field(i).Type, seen, is) {
				return true
			}
		}
	}
	return false
}
