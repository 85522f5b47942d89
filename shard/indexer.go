// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"slices"

	"example.com/informerstack/store"
)

// indexer notices what is written to an informer's store. It costs an atomic load while nothing is
// pending.
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
	if err == nil && x.cache.isPending.Load() {
		x.cache.written(obj)
	}
	return err
}

// Replace notices a whole list.
func (x indexer) Replace(list []any, resourceVersion string) error {
	err := x.Indexer.Replace(list, resourceVersion)
	if err == nil && x.cache.isPending.Load() {
		x.cache.replaced(resourceVersion)
	}
	return err
}

// Transaction notices each change that was made.
func (x transactionIndexer) Transaction(txns ...store.Transaction) *store.TransactionError {
	err := x.transactions.Transaction(txns...)
	if !x.cache.isPending.Load() {
		return err
	}
	for i, txn := range txns {
		if err == nil || slices.Contains(err.SuccessfulIndices, i) {
			x.cache.written(txn.Object)
		}
	}
	return err
}

// written notes that the store has a change of obj's key.
func (c *informerCache) written(obj any) {
	key, err := store.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return // not reached: the store has its key
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pending.done(c.keys.hash(key))
	c.pendingChangedLocked()
}

// replaced notes that the store holds exactly the list of resourceVersion.
func (c *informerCache) replaced(resourceVersion string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if resourceVersion == c.pending.version {
		clear(c.pending.passed)
		c.pendingChangedLocked()
	}
}

// pendingChangedLocked notes the shards that are stored now.
func (c *informerCache) pendingChangedLocked() {
	c.isPending.Store(len(c.pending.passed) > 0)
	if c.pending.finished() {
		c.storedShards = c.storedShards.plus(c.pending.shards)
		c.pending.shards = newShardSet(c.count)
		c.changed()
	}
}
