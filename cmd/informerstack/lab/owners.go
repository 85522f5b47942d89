// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/apitest"
)

// ownerIndex is the name of the index by the names of an object's owners. An object may have
// several owners, or no owner.
const ownerIndex = "owner"

// ownersOf is the index function of ownerIndex.
func ownersOf(obj any) ([]string, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, owner := range m.GetOwnerReferences() {
		names = append(names, owner.Name)
	}
	return names, nil
}

// owners are those that the command own gives to an object, one after the other.
var owners = [][]string{{}, {"web"}, {"db"}, {"web", "db"}}

// own gives an object these owners, or the next of owners if names is nil. It writes to the server
// like another client, and tries again if there is a write in between.
func (l *Lab) own(key string, names []string) error {
	objects := l.known()
	if objects == nil {
		return errNoServer
	}
	stored, exists, err := objects.GetByKey(key)
	if err != nil || !exists {
		return fmt.Errorf("no object %q in the store: follow one that exists", key)
	}
	obj, ok := stored.(apitest.Object)
	if !ok {
		return fmt.Errorf("object %q has no metadata", key)
	}
	obj = obj.DeepCopyObject().(apitest.Object)
	for {
		if err := l.options.Server.Get(obj); err != nil {
			return err
		}
		next := names
		if next == nil {
			present, _ := ownersOf(obj)
			at := slices.IndexFunc(owners, func(o []string) bool {
				return slices.Equal(o, present)
			})
			next = owners[(at+1)%len(owners)]
		}
		references := make([]metav1.OwnerReference, 0, len(next))
		for _, name := range next {
			references = append(references, metav1.OwnerReference{
				APIVersion: "apps/v1", Kind: "Deployment", Name: name, UID: types.UID(name),
			})
		}
		obj.SetOwnerReferences(references)
		if err := l.options.Server.Update(obj); !apierrors.IsConflict(err) {
			return err
		}
	}
}
