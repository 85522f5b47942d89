// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
)

// IndexFunc computes the values under which an object can be found in one index: none, one, or several. It must compute
// the same values from the same object every time, and must not call the store.
//
// Source: tools/cache/index.go IndexFunc
type IndexFunc func(obj any) ([]string, error)

// Indexers holds the index functions by index name.
//
//	indexers["byNode"](pod ns/a) = ["node-1"]
//
// Source: tools/cache/index.go Indexers
type Indexers map[string]IndexFunc

// Index is one index: the keys of the objects by indexed value.
//
//	index["node-1"] = {ns/a, ns/b}
type Index map[string]sets.Set[string]

// Indices holds every index by index name.
//
//	indices["byNode"]["node-1"] = {ns/a, ns/b}
//
// Source: tools/cache/index.go Indices
type Indices map[string]Index

// NamespaceIndex is the usual name of the index by namespace.
const NamespaceIndex = "namespace"

// MetaNamespaceIndexFunc is the usual function of the index by namespace.
//
// Source: tools/cache/index.go MetaNamespaceIndexFunc
func MetaNamespaceIndexFunc(obj any) ([]string, error) {
	m, err := accessor(obj)
	if err != nil {
		return nil, err
	}
	return []string{m.GetNamespace()}, nil
}

// IndexFuncToKeyFuncAdapter makes a KeyFunc of an index function that computes exactly one value, different for each
// object. No value, or more than one, is an error.
//
// Source: tools/cache/index.go IndexFuncToKeyFuncAdapter
func IndexFuncToKeyFuncAdapter(indexFunc IndexFunc) KeyFunc {
	return func(obj any) (string, error) {
		values, err := indexFunc(obj)
		if err != nil {
			return "", err
		}
		switch len(values) {
		case 0:
			return "", fmt.Errorf("unexpected empty indexKeys")
		case 1:
			return values[0], nil
		}
		return "", fmt.Errorf("too many keys: %v", values)
	}
}
