// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/store"
)

// How a store is read. Each is the type of package store.
type (
	// AppendFunc receives the objects of a list one by one.
	AppendFunc = store.AppendFunc
	// GenericLister reads objects of any type.
	GenericLister = store.GenericLister
	// GenericNamespaceLister reads those of one namespace.
	GenericNamespaceLister = store.GenericNamespaceLister
)

// ListAll calls appendFn for each object whose labels match.
//
// Source: tools/cache/listers.go ListAll
func ListAll(s Store, selector labels.Selector, appendFn AppendFunc) error {
	return store.ListAll(s, selector, appendFn)
}

// ListAllByNamespace is ListAll within one namespace, or in all for "".
//
// Source: tools/cache/listers.go ListAllByNamespace
func ListAllByNamespace(indexer Indexer, namespace string, selector labels.Selector, appendFn AppendFunc) error {
	return store.ListAllByNamespace(indexer, namespace, selector, appendFn)
}

// NewGenericLister returns a GenericLister. resource is what its NotFound errors name.
//
// Source: tools/cache/listers.go NewGenericLister
func NewGenericLister(indexer Indexer, resource schema.GroupResource) GenericLister {
	return store.NewGenericLister(indexer, resource)
}
