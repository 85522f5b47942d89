// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/store"
)

// What a store is made of. Each is the type of package store.
type (
	// Store holds objects by key.
	Store = store.Store
	// KeyFunc computes the key of an object.
	KeyFunc = store.KeyFunc
	// KeyError reports an object without a key.
	KeyError = store.KeyError
	// ExplicitKey stands for an object of which only the key is known.
	ExplicitKey = store.ExplicitKey
	// ObjectName is a key as a comparable value.
	ObjectName = store.ObjectName
	// TransformFunc changes an object before it is cached.
	TransformFunc = store.TransformFunc
	// DeletedFinalStateUnknown is a tombstone.
	DeletedFinalStateUnknown = store.DeletedFinalStateUnknown

	// TransactionStore applies many changes at once.
	TransactionStore = store.TransactionStore
	// Transaction is one of them.
	Transaction = store.Transaction
	// TransactionType says what it does.
	TransactionType = store.TransactionType
	// TransactionError reports those that were left out.
	TransactionError = store.TransactionError

	// StoreOption changes how NewStore and NewIndexer build a store.
	StoreOption = store.Option
)

// The types of a Transaction.
const (
	TransactionTypeAdd    = store.TransactionTypeAdd
	TransactionTypeUpdate = store.TransactionTypeUpdate
	TransactionTypeDelete = store.TransactionTypeDelete
)

// NewStore returns an empty store without indexes.
//
// Source: tools/cache/store.go NewStore
func NewStore(keyFunc KeyFunc, opts ...StoreOption) Store {
	return store.New(keyFunc, withGates(opts)...)
}

// NewIndexer returns an empty store with indexes.
//
// Source: tools/cache/store.go NewIndexer
func NewIndexer(keyFunc KeyFunc, indexers Indexers, opts ...StoreOption) Indexer {
	return store.NewIndexer(keyFunc, indexers, withGates(opts)...)
}

func withGates(opts []StoreOption) []StoreOption {
	return append(slices.Clip(opts), store.WithResourceVersionHidden(hideResourceVersion))
}

// WithTransformer passes each object that is stored through transformer first.
//
// Source: tools/cache/store.go WithTransformer
func WithTransformer(transformer TransformFunc) StoreOption {
	return store.WithTransformer(transformer)
}

// WithStoreMetrics reports the store's resourceVersion to a metric of the provider, nil for the one of
// SetInformerMetricsProvider, if the identifier is reserved.
//
// Source: tools/cache/store.go WithStoreMetrics
func WithStoreMetrics(identifier InformerNameAndResource, metrics InformerMetricsProvider) StoreOption {
	return store.WithStoreMetrics(storeMetric(identifier, metrics))
}

// MetaNamespaceKeyFunc is the usual KeyFunc: "namespace/name", or "name".
//
// Source: tools/cache/store.go MetaNamespaceKeyFunc
func MetaNamespaceKeyFunc(obj any) (string, error) { return store.MetaNamespaceKeyFunc(obj) }

// DeletionHandlingMetaNamespaceKeyFunc is MetaNamespaceKeyFunc that knows tombstones.
//
// Source: tools/cache/controller.go DeletionHandlingMetaNamespaceKeyFunc
func DeletionHandlingMetaNamespaceKeyFunc(obj any) (string, error) {
	return store.DeletionHandlingMetaNamespaceKeyFunc(obj)
}

// SplitMetaNamespaceKey undoes MetaNamespaceKeyFunc.
//
// Source: tools/cache/store.go SplitMetaNamespaceKey
func SplitMetaNamespaceKey(key string) (namespace, name string, err error) {
	return store.SplitMetaNamespaceKey(key)
}

// ObjectToName reads the name of an object that has metadata.
//
// Source: tools/cache/store.go ObjectToName
func ObjectToName(obj any) (ObjectName, error) { return store.ObjectToName(obj) }

// DeletionHandlingObjectToName is ObjectToName that knows tombstones.
//
// Source: tools/cache/controller.go DeletionHandlingObjectToName
func DeletionHandlingObjectToName(obj any) (ObjectName, error) {
	return store.DeletionHandlingObjectToName(obj)
}

// MetaObjectToName reads the name from metadata.
//
// Source: tools/cache/store.go MetaObjectToName
func MetaObjectToName(obj metav1.Object) ObjectName { return store.MetaObjectToName(obj) }

// NewObjectName joins a namespace and a name.
//
// Source: tools/cache/object-names.go NewObjectName
func NewObjectName(namespace, name string) ObjectName { return store.NewObjectName(namespace, name) }

// ParseObjectName undoes ObjectName's String.
//
// Source: tools/cache/object-names.go ParseObjectName
func ParseObjectName(str string) (ObjectName, error) { return store.ParseObjectName(str) }

// NamespacedNameAsObjectName converts from API libraries' spelling.
//
// Source: tools/cache/object-names.go NamespacedNameAsObjectName
func NamespacedNameAsObjectName(nn types.NamespacedName) ObjectName {
	return store.NamespacedNameAsObjectName(nn)
}
