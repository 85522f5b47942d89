// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// KeyFunc computes the key under which an object is stored.
type KeyFunc func(obj any) (string, error)

// KeyError reports an object of which no key could be computed.
//
// Source: tools/cache/store.go KeyError
type KeyError struct {
	Obj any
	Err error
}

// Error names the object and the cause.
func (e KeyError) Error() string {
	return fmt.Sprintf("couldn't create key for object %+v: %v", e.Obj, e.Err)
}

// Unwrap returns the cause.
func (e KeyError) Unwrap() error { return e.Err }

// ExplicitKey stands where an object is expected when only its key is known.
type ExplicitKey string

// MetaNamespaceKeyFunc is the usual KeyFunc: "namespace/name", or "name" for a cluster-wide object.
//
// Source: tools/cache/store.go MetaNamespaceKeyFunc
func MetaNamespaceKeyFunc(obj any) (string, error) {
	if key, ok := obj.(ExplicitKey); ok {
		return string(key), nil
	}
	name, err := ObjectToName(obj)
	if err != nil {
		return "", err
	}
	return name.String(), nil
}

// SplitMetaNamespaceKey undoes MetaNamespaceKeyFunc. The namespace of a key without a slash is "".
//
// Source: tools/cache/store.go SplitMetaNamespaceKey
func SplitMetaNamespaceKey(key string) (namespace, name string, err error) {
	first, rest, slash := strings.Cut(key, "/")
	switch {
	case !slash:
		return "", first, nil
	case strings.Contains(rest, "/"):
		return "", "", fmt.Errorf("unexpected key format: %q", key)
	}
	return first, rest, nil
}

// ObjectToName reads the name and namespace of an object that has metadata. A nil pointer has none.
//
// Source: tools/cache/store.go ObjectToName
func ObjectToName(obj any) (ObjectName, error) {
	m, err := accessor(obj)
	if err != nil {
		return ObjectName{}, err
	}
	return MetaObjectToName(m), nil
}

// accessor is meta.Accessor that refuses nil pointers, whose methods would panic.
func accessor(obj any) (metav1.Object, error) {
	m, err := meta.Accessor(obj)
	if err == nil && isNil(obj) {
		err = fmt.Errorf("%T is nil", obj)
	}
	if err != nil {
		return nil, fmt.Errorf("object has no meta: %w", err)
	}
	return m, nil
}

// isNil reports whether obj is nil, or a nil pointer in an interface.
func isNil(obj any) bool {
	v := reflect.ValueOf(obj)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}
