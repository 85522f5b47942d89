// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"slices"

	"example.com/informerstack/store"
)

// Indexer traces the writes to a store, but not the reads. The result has a Transaction method if
// the store has one.
func Indexer(inner store.Indexer, sink Sink) store.Indexer {
	traced := indexer{inner, sink}
	if transactions, ok := inner.(store.TransactionStore); ok {
		return transactionIndexer{traced, transactions}
	}
	return traced
}

type indexer struct {
	store.Indexer
	sink Sink
}

// Len implements store.Counter.
func (x indexer) Len() int { return store.Len(x.Indexer) }

// Add traces the stored object.
func (x indexer) Add(obj any) error {
	err := x.Indexer.Add(obj)
	x.sink.about(Store, "Add", obj, "", err)
	return err
}

// Update traces the stored object, and the version that it replaces.
func (x indexer) Update(obj any) error {
	old, exists, _ := x.Indexer.Get(obj)
	err := x.Indexer.Update(obj)
	detail := ""
	if exists {
		detail = "was @" + version(old)
	}
	x.sink.about(Store, "Update", obj, detail, err)
	return err
}

// Delete traces the removed object.
func (x indexer) Delete(obj any) error {
	err := x.Indexer.Delete(obj)
	x.sink.about(Store, "Delete", obj, "", err)
	return err
}

// Replace traces the new content as a whole.
func (x indexer) Replace(list []any, resourceVersion string) error {
	err := x.Indexer.Replace(list, resourceVersion)
	x.sink.collection(Store, "Replace", resourceVersion, items(len(list)), err)
	return err
}

type transactionIndexer struct {
	indexer
	transactions store.TransactionStore
}

// Transaction traces each change that was made, and the error if some were not.
func (x transactionIndexer) Transaction(txns ...store.Transaction) *store.TransactionError {
	err := x.transactions.Transaction(txns...)
	for i, txn := range txns {
		if err == nil || slices.Contains(err.SuccessfulIndices, i) {
			x.sink.about(Store, string(txn.Type), txn.Object, "", nil)
		}
	}
	if err != nil {
		x.sink.collection(Store, "Transaction", "", "", err)
	}
	return err
}
