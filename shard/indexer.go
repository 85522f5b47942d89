// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"example.com/informerstack/store"
)

// indexer notices what is written to an informer's store. It costs an atomic load once the last
// list is written.
type indexer struct {
	store.Indexer
	cache *informerCache
}

type transactionIndexer struct {
	indexer
	transactions store.TransactionStore
}

func (c *informerCache) wrapIndexer(inner store.Indexer) store.Indexer {
	if c.store != nil {
		panic("shard: the result of Shards.Options is for one informer; call it for each")
	}
	c.store = inner
	if transactions, ok := inner.(store.TransactionStore); ok {
		return transactionIndexer{indexer{inner, c}, transactions}
	}
	return indexer{inner, c}
}

// recall returns the value of an object that is stored, or was until a moment ago.
func (x indexer) recall(key string) (value string, ok bool) {
	x.cache.mu.Lock()
	defer x.cache.mu.Unlock()
	return x.cache.keys.value(key)
}

// Len implements store.Counter.
func (x indexer) Len() int { return store.Len(x.Indexer) }

// Add implements store.Store, as the next methods do.
func (x indexer) Add(obj any) error {
	return x.noticed(obj, x.Indexer.Add(obj))
}

// Update notices the object.
func (x indexer) Update(obj any) error {
	return x.noticed(obj, x.Indexer.Update(obj))
}

// Delete notices the object or tombstone.
func (x indexer) Delete(obj any) error {
	return x.noticed(obj, x.Indexer.Delete(obj))
}

func (x indexer) noticed(obj any, err error) error {
	if err == nil && x.cache.isUnwritten.Load() {
		x.cache.written(obj)
	}
	return err
}

// Replace notices a whole list.
func (x indexer) Replace(list []any, resourceVersion string) error {
	err := x.Indexer.Replace(list, resourceVersion)
	if err == nil && x.cache.isUnwritten.Load() {
		x.cache.written(list...)
	}
	return err
}

// Transaction notices each change that was made.
func (x transactionIndexer) Transaction(txns ...store.Transaction) *store.TransactionError {
	err := x.transactions.Transaction(txns...)
	if !x.cache.isUnwritten.Load() {
		return err
	}
	for i, txn := range txns {
		if err == nil || slices.Contains(err.SuccessfulIndices, i) {
			x.cache.written(txn.Object)
		}
	}
	return err
}

// written notes that the store has changes of the objects' keys.
func (c *informerCache) written(objs ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, obj := range objs {
		key, err := store.DeletionHandlingMetaNamespaceKeyFunc(obj)
		if err == nil { // always: the store has its key
			delete(c.unwritten, key)
		}
	}
	c.writtenLocked()
}

// writtenLocked notes the shards that are stored now.
func (c *informerCache) writtenLocked() {
	c.isUnwritten.Store(len(c.unwritten) > 0)
	if len(c.unwritten) == 0 && c.fresh.Len() > 0 {
		c.stored = c.stored.Union(c.fresh)
		c.fresh = sets.New[Shard]()
		c.changed()
	}
}
