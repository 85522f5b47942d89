// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/internal/helpers/objects"
)

// KeyFunc computes the key of an object in a store.
type KeyFunc func(obj any) (string, error)

// KeyError reports that the key of an object could not be computed.
//
// Source: tools/cache/store.go KeyError
type KeyError struct {
	Obj any
	Err error
}

// Error names the object's type, its name if it has one, and the cause. It does not print the
// object, which may be a Secret.
func (e KeyError) Error() string {
	what := fmt.Sprintf("%T", e.Obj)
	if name, err := ObjectToName(e.Obj); err == nil {
		what += " " + name.String()
	}
	return fmt.Sprintf("couldn't create key for object %s: %v", what, e.Err)
}

// Unwrap returns the cause.
func (e KeyError) Unwrap() error { return e.Err }

// ExplicitKey is passed in place of an object if only its key is known.
type ExplicitKey string

// DeletedFinalStateUnknown is a tombstone: the object is gone, but the watch did not report its
// delete, and the next LIST no longer contained it. Obj is the last state that was cached, which
// may be stale, or nil if that is unknown too.
//
// Source: tools/cache/delta_fifo.go DeletedFinalStateUnknown
type DeletedFinalStateUnknown struct {
	Key string
	Obj any
}

// MetaNamespaceKeyFunc is the usual KeyFunc: "namespace/name", or "name" for a cluster-wide object.
//
// Source: tools/cache/store.go MetaNamespaceKeyFunc
func MetaNamespaceKeyFunc(obj any) (string, error) {
	if key, ok := obj.(ExplicitKey); ok {
		return string(key), nil
	}
	m, err := objects.Meta(obj)
	if err != nil {
		return "", err
	}
	if m.GetNamespace() == "" {
		return m.GetName(), nil
	}
	return m.GetNamespace() + "/" + m.GetName(), nil
}

// NamespaceIndex is the usual name of the index by namespace.
const NamespaceIndex = "namespace"

// MetaNamespaceIndexFunc is the usual function of the index by namespace.
//
// Source: tools/cache/index.go MetaNamespaceIndexFunc
func MetaNamespaceIndexFunc(obj any) ([]string, error) {
	m, err := objects.Meta(obj)
	if err != nil {
		return nil, err
	}
	return []string{m.GetNamespace()}, nil
}

// DeletionHandlingMetaNamespaceKeyFunc is MetaNamespaceKeyFunc that also returns the key of a
// tombstone. Use it in delete handlers.
//
// Source: tools/cache/controller.go DeletionHandlingMetaNamespaceKeyFunc
func DeletionHandlingMetaNamespaceKeyFunc(obj any) (string, error) {
	if tombstone, ok := obj.(DeletedFinalStateUnknown); ok {
		return tombstone.Key, nil
	}
	return MetaNamespaceKeyFunc(obj)
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

// ObjectName is the key of a Kubernetes object as a comparable value. Its parts need no parsing.
//
// Source: tools/cache/object-names.go ObjectName
type ObjectName struct {
	Namespace string
	Name      string
}

// NewObjectName joins a namespace ("" for a cluster-wide object) and a name.
func NewObjectName(namespace, name string) ObjectName {
	return ObjectName{Namespace: namespace, Name: name}
}

// MetaObjectToName reads the name and namespace from metadata.
func MetaObjectToName(obj metav1.Object) ObjectName {
	return ObjectName{Namespace: obj.GetNamespace(), Name: obj.GetName()}
}

// ObjectToName reads the name and namespace of an object that has metadata. It fails for a nil
// pointer.
//
// Source: tools/cache/store.go ObjectToName
func ObjectToName(obj any) (ObjectName, error) {
	m, err := objects.Meta(obj)
	if err != nil {
		return ObjectName{}, err
	}
	return MetaObjectToName(m), nil
}

// DeletionHandlingObjectToName is ObjectToName that also returns the name of a tombstone.
//
// Source: tools/cache/controller.go DeletionHandlingObjectToName
func DeletionHandlingObjectToName(obj any) (ObjectName, error) {
	if tombstone, ok := obj.(DeletedFinalStateUnknown); ok {
		return ParseObjectName(tombstone.Key)
	}
	return ObjectToName(obj)
}

// ParseObjectName undoes String.
func ParseObjectName(key string) (ObjectName, error) {
	namespace, name, err := SplitMetaNamespaceKey(key)
	return ObjectName{Namespace: namespace, Name: name}, err
}

// AsNamespacedName converts to the type that API libraries use.
func (n ObjectName) AsNamespacedName() types.NamespacedName {
	return types.NamespacedName{Namespace: n.Namespace, Name: n.Name}
}

// Parts returns the namespace and the name.
func (n ObjectName) Parts() (namespace, name string) { return n.Namespace, n.Name }

// String is the key that MetaNamespaceKeyFunc computes: "namespace/name", or "name".
func (n ObjectName) String() string {
	if n.Namespace == "" {
		return n.Name
	}
	return n.Namespace + "/" + n.Name
}
