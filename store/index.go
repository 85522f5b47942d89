// SPDX-License-Identifier: Apache-2.0

package store

import (
	"k8s.io/apimachinery/pkg/util/sets"
)

// IndexFunc computes the values under which an object can be found in one index.
type IndexFunc func(obj any) ([]string, error)

// Indexers holds the index functions by index name.
type Indexers map[string]IndexFunc

// Index is one index: the keys of the objects by indexed value.
type Index map[string]sets.Set[string]

// Indices holds every index by index name.
type Indices map[string]Index

// NamespaceIndex is the usual name of the index by namespace.
const NamespaceIndex = "namespace"
