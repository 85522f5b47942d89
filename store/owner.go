// SPDX-License-Identifier: Apache-2.0

package store

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/internal/helpers/objects"
)

// OwnerIndex is the usual name of the index by owner.
const OwnerIndex = "owner"

// OwnerIndexFunc is the usual function of the index by owner: its value is the UID of the object's
// controller, the owner reference with controller set. An object without one has no value. The
// children of a Website are those under string(website.UID), without the children that a deleted
// Website of the same name has left.
func OwnerIndexFunc(obj any) ([]string, error) {
	m, err := objects.Meta(obj)
	if err != nil {
		return nil, err
	}
	if owner := metav1.GetControllerOfNoCopy(m); owner != nil {
		return []string{string(owner.UID)}, nil
	}
	return nil, nil
}

// OwnerNames returns a function for controller.MapHandler: from an object, or its tombstone, to the
// name of its controller if that is of kind owner. Versions of the kind do not matter. The owner is
// in the namespace of the object; an owner without a namespace needs a function of its own. A
// tombstone without an object has no names, because nothing is known of its owner.
func OwnerNames(owner schema.GroupKind) func(obj any) ([]ObjectName, error) {
	return func(obj any) ([]ObjectName, error) {
		if tombstone, ok := obj.(DeletedFinalStateUnknown); ok {
			if obj = tombstone.Obj; obj == nil {
				return nil, nil
			}
		}
		m, err := objects.Meta(obj)
		if err != nil {
			return nil, err
		}
		found := metav1.GetControllerOfNoCopy(m)
		if found == nil || schema.FromAPIVersionAndKind(
			found.APIVersion, found.Kind).GroupKind() != owner {
			return nil, nil
		}
		return []ObjectName{{Namespace: m.GetNamespace(), Name: found.Name}}, nil
	}
}
