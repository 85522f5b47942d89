// SPDX-License-Identifier: Apache-2.0

package store

import (
	"iter"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"example.com/informerstack/internal/helpers/objects"
)

// ListAll calls appendFn for each object with labels that match the selector; a nil selector
// matches all objects. Only a selector that looks at labels needs objects with metadata. Then the
// first object without metadata is an error; appendFn has been called for the objects before it.
//
// A store that makes its objects when they are read has the methods All and AllByIndex, which yield
// one after the other: those that do not match are not in memory together. An object that may be
// without labels has a method SelectorLabels, whose error ListAll returns.
//
// Source: tools/cache/listers.go ListAll
func ListAll(store Store, selector labels.Selector, appendFn func(obj any)) error {
	if labels.MatchesNothing(selector) {
		return nil
	}
	if lazy, ok := innermost(store).(lazyStore); ok {
		return appendEach(lazy.All(), selector, appendFn)
	}
	return appendMatching(store.List(), selector, appendFn)
}

// lazyStore makes its objects when they are read.
type lazyStore interface {
	All() iter.Seq[any]
	AllByIndex(indexName, indexedValue string) (iter.Seq[any], error)
}

func appendEach(all iter.Seq[any], selector labels.Selector, appendFn func(obj any)) error {
	for obj := range all {
		if err := appendMatching([]any{obj}, selector, appendFn); err != nil {
			return err
		}
	}
	return nil
}

// ListAllByNamespace is ListAll within one namespace, or in all of them if namespace is "". It uses
// the index named NamespaceIndex. Without that index, it looks at every object.
//
// Source: tools/cache/listers.go ListAllByNamespace
func ListAllByNamespace(
	indexer Indexer, namespace string, selector labels.Selector, appendFn func(obj any),
) error {
	if labels.MatchesNothing(selector) {
		return nil
	}
	if namespace == metav1.NamespaceAll {
		return ListAll(indexer, selector, appendFn)
	}
	if lazy, ok := innermost(indexer).(lazyStore); ok {
		if inNamespace, err := lazy.AllByIndex(NamespaceIndex, namespace); err == nil {
			return appendEach(inNamespace, selector, appendFn)
		}
	}
	inNamespace, err := indexer.ByIndex(NamespaceIndex, namespace)
	if err == nil {
		return appendMatching(inNamespace, selector, appendFn)
	}
	for _, obj := range indexer.List() {
		m, err := objects.Meta(obj)
		if err != nil {
			return err
		}
		if m.GetNamespace() != namespace {
			continue
		}
		if err := appendMatching([]any{obj}, selector, appendFn); err != nil {
			return err
		}
	}
	return nil
}

func appendMatching(list []any, selector labels.Selector, appendFn func(obj any)) error {
	if selector == nil || selector.Empty() { // saves reading the labels
		for _, obj := range list {
			appendFn(obj)
		}
		return nil
	}
	for _, obj := range list {
		own, err := labelsOf(obj)
		if err != nil {
			return err
		}
		if selector.Matches(own) {
			appendFn(obj)
		}
	}
	return nil
}

func labelsOf(obj any) (labels.Set, error) {
	m, err := objects.Meta(obj)
	if err != nil {
		return nil, err
	}
	switch o := obj.(type) {
	case interface{ GetLabels() map[string]string }:
		return o.GetLabels(), nil
	case interface {
		SelectorLabels() (map[string]string, error)
	}:
		return o.SelectorLabels()
	}
	return m.GetLabels(), nil
}

// Lister reads objects of type T, of one resource, out of an Indexer. The objects are the cached
// ones: do not change them. Make a Lister with NewLister; the zero value cannot be used.
type Lister[T any] struct {
	indexer  Indexer
	resource schema.GroupResource
}

// NewLister returns a Lister. Its NotFound errors name resource.
func NewLister[T any](indexer Indexer, resource schema.GroupResource) Lister[T] {
	return Lister[T]{indexer: indexer, resource: resource}
}

// List returns the objects that match the selector, in all namespaces and in no order; a nil
// selector matches all objects.
func (l Lister[T]) List(selector labels.Selector) ([]T, error) {
	return l.ByNamespace(metav1.NamespaceAll).List(selector)
}

// Get returns the cluster-wide object called name. The error satisfies apierrors.IsNotFound if it
// is not in the store.
func (l Lister[T]) Get(name string) (T, error) {
	return l.get(name, name)
}

// ByNamespace narrows the lister to one namespace, or not at all if namespace is "".
func (l Lister[T]) ByNamespace(namespace string) NamespaceLister[T] {
	return NamespaceLister[T]{lister: l, namespace: namespace}
}

func (l Lister[T]) get(key, name string) (T, error) {
	obj, exists, err := l.indexer.GetByKey(key)
	if err == nil && !exists {
		err = apierrors.NewNotFound(l.resource, name)
	}
	if err != nil {
		return *new(T), err
	}
	return as[T](obj)
}

// NamespaceLister reads the objects of one namespace.
type NamespaceLister[T any] struct {
	lister    Lister[T]
	namespace string
}

// List returns the objects that match the selector, in the namespace and in no order; a nil
// selector matches all objects.
func (l NamespaceLister[T]) List(selector labels.Selector) ([]T, error) {
	var list []T
	var wrongType error
	err := ListAllByNamespace(l.lister.indexer, l.namespace, selector, func(obj any) {
		typed, err := as[T](obj)
		if err != nil {
			wrongType = err
			return
		}
		list = append(list, typed)
	})
	if err == nil {
		err = wrongType
	}
	return list, err
}

// Get returns the object called name in the namespace. The error satisfies apierrors.IsNotFound if
// it is not in the store.
func (l NamespaceLister[T]) Get(name string) (T, error) {
	return l.lister.get(l.namespace+"/"+name, name)
}
