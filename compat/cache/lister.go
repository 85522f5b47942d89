// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/store"
)

// AppendFunc receives the objects of a list one by one.
//
// Source: tools/cache/listers.go AppendFunc
type AppendFunc func(obj any)

// ListAll calls appendFn for each object with labels that match the selector.
//
// Source: tools/cache/listers.go ListAll
func ListAll(s Store, selector labels.Selector, appendFn AppendFunc) error {
	return store.ListAll(s, selector, appendFn)
}

// ListAllByNamespace is ListAll within one namespace, or in all for "".
//
// Source: tools/cache/listers.go ListAllByNamespace
func ListAllByNamespace(
	indexer Indexer, namespace string, selector labels.Selector, appendFn AppendFunc,
) error {
	return store.ListAllByNamespace(indexer, namespace, selector, appendFn)
}

// GenericLister is a store.Lister for code that does not know the type.
//
// Source: tools/cache/listers.go GenericLister
type GenericLister interface {
	// List returns the objects that match the selector, in all namespaces.
	List(selector labels.Selector) ([]runtime.Object, error)
	// Get returns the object with the key name, or a NotFound error.
	Get(name string) (runtime.Object, error)
	// ByNamespace narrows the lister to one namespace.
	ByNamespace(namespace string) GenericNamespaceLister
}

// GenericNamespaceLister is a store.NamespaceLister for code that does not know the type.
//
// Source: tools/cache/listers.go GenericNamespaceLister
type GenericNamespaceLister interface {
	// List returns the objects that match the selector, in the namespace.
	List(selector labels.Selector) ([]runtime.Object, error)
	// Get returns the object called name in the namespace, or a NotFound error.
	Get(name string) (runtime.Object, error)
}

// NewGenericLister returns a GenericLister. Its NotFound errors name resource.
//
// Source: tools/cache/listers.go NewGenericLister
func NewGenericLister(indexer Indexer, resource schema.GroupResource) GenericLister {
	return genericLister{store.NewLister[runtime.Object](indexer, resource)}
}

type genericLister struct{ store.Lister[runtime.Object] }

// ByNamespace implements GenericLister.
func (l genericLister) ByNamespace(namespace string) GenericNamespaceLister {
	return l.Lister.ByNamespace(namespace)
}
