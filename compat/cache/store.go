// SPDX-License-Identifier: Apache-2.0

package cache

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"example.com/informerstack/store"
)

// The parts of a store. Each is the type of package store.
type (
	// Store holds objects by key.
	Store = store.Store
	// KeyFunc computes the key of an object.
	KeyFunc = store.KeyFunc
	// KeyError reports an object without a key.
	KeyError = store.KeyError
	// ExplicitKey is passed in place of an object if only its key is known.
	ExplicitKey = store.ExplicitKey
	// ObjectName is a key as a comparable value.
	ObjectName = store.ObjectName
	// TransformFunc changes an object before it is cached.
	TransformFunc = store.TransformFunc
	// DeletedFinalStateUnknown is a tombstone.
	DeletedFinalStateUnknown = store.DeletedFinalStateUnknown

	// TransactionStore applies many changes at once.
	TransactionStore = store.TransactionStore
	// Transaction is one of these changes.
	Transaction = store.Transaction
	// TransactionType is the effect of a Transaction.
	TransactionType = store.TransactionType
	// TransactionError reports the changes that were left out.
	TransactionError = store.TransactionError
)

// The types of a Transaction.
const (
	TransactionTypeAdd    = store.TransactionTypeAdd
	TransactionTypeUpdate = store.TransactionTypeUpdate
	TransactionTypeDelete = store.TransactionTypeDelete
)

// StoreOption configures NewStore and NewIndexer.
type StoreOption = func(*cache)

// WithTransformer passes each object that is stored through transformer first.
//
// Source: tools/cache/store.go WithTransformer
func WithTransformer(transformer TransformFunc) StoreOption {
	return func(c *cache) { c.transformer = transformer }
}

// WithStoreMetrics reports the store's resourceVersion to a metric of the provider, or of that of
// SetInformerMetricsProvider if it is nil. It does so only if the identifier is reserved.
//
// Source: tools/cache/store.go WithStoreMetrics
func WithStoreMetrics(
	identifier InformerNameAndResource, metrics InformerMetricsProvider,
) StoreOption {
	return func(c *cache) { c.metrics = storeMetrics(identifier, metrics) }
}

// NewStore returns an empty store without indexes.
//
// Source: tools/cache/store.go NewStore
func NewStore(keyFunc KeyFunc, opts ...StoreOption) Store {
	return NewIndexer(keyFunc, nil, opts...)
}

// NewIndexer returns an empty store with indexes.
//
// Source: tools/cache/store.go NewIndexer
func NewIndexer(keyFunc KeyFunc, indexers Indexers, opts ...StoreOption) Indexer {
	var c cache
	for _, opt := range opts {
		opt(&c)
	}
	if c.transformer != nil {
		pairs := &threadSafeMap{metrics: c.metrics}
		pairs.init(indexers)
		return &transformingStore{pairs, keyFunc, c.transformer}
	}
	return newCache(store.New(keyFunc, store.Options{Indexers: indexers, Metrics: c.metrics}))
}

// cache is a store of the core that obeys the feature gates.
type cache struct {
	coreStore

	// Options of NewIndexer:
	transformer TransformFunc
	metrics     store.Metrics
}

// coreStore is the result of store.New.
type coreStore interface {
	store.Indexer
	store.TransactionStore
	store.Counter
}

func newCache(core store.Store) *cache { return &cache{coreStore: core.(coreStore)} }

// LastStoreSyncResourceVersion implements Store.
func (c *cache) LastStoreSyncResourceVersion() string {
	if hideResourceVersion() {
		return ""
	}
	return c.coreStore.LastStoreSyncResourceVersion()
}

// MetaNamespaceKeyFunc is the usual KeyFunc: "namespace/name", or "name".
//
// Source: tools/cache/store.go MetaNamespaceKeyFunc
func MetaNamespaceKeyFunc(obj any) (string, error) { return store.MetaNamespaceKeyFunc(obj) }

// DeletionHandlingMetaNamespaceKeyFunc is MetaNamespaceKeyFunc that accepts tombstones.
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

// DeletionHandlingObjectToName is ObjectToName that accepts tombstones.
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
func NewObjectName(namespace, name string) ObjectName {
	return store.NewObjectName(namespace, name)
}

// ParseObjectName undoes ObjectName's String.
//
// Source: tools/cache/object-names.go ParseObjectName
func ParseObjectName(str string) (ObjectName, error) { return store.ParseObjectName(str) }

// NamespacedNameAsObjectName converts from the type that API libraries use.
//
// Source: tools/cache/object-names.go NamespacedNameAsObjectName
func NamespacedNameAsObjectName(nn types.NamespacedName) ObjectName {
	return ObjectName{Namespace: nn.Namespace, Name: nn.Name}
}
