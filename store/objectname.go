// SPDX-License-Identifier: Apache-2.0

package store

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ObjectName is the key of a Kubernetes object as a comparable value: cheaper to split than a string key.
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

// ParseObjectName undoes String.
func ParseObjectName(key string) (ObjectName, error) {
	namespace, name, err := SplitMetaNamespaceKey(key)
	return ObjectName{Namespace: namespace, Name: name}, err
}

// NamespacedNameAsObjectName converts from the spelling that API libraries use.
func NamespacedNameAsObjectName(n types.NamespacedName) ObjectName {
	return ObjectName{Namespace: n.Namespace, Name: n.Name}
}

// AsNamespacedName converts to the spelling that API libraries use.
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
