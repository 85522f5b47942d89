// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"slices"

	"example.com/informerstack/store"
)

// Indexer traces what is written to a store, and leaves reading alone.
func Indexer(of store.Indexer, sink Sink) store.Indexer {
	traced := indexer{of, sink}
	if transactions, ok := of.(store.TransactionStore); ok {
		return transactionIndexer{traced, transactions}
	}
	return traced
}

type indexer struct {
	store.Indexer
	sink Sink
}

// Add traces the object that is stored.
func (x indexer) Add(obj any) error {
	err := x.Indexer.Add(obj)
	x.sink.about(Store, "Add", obj, "", err)
	return err
}

// Update traces the object that is stored, and which one it replaces.
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

// Delete traces the object that is removed.
func (x indexer) Delete(obj any) error {
	err := x.Indexer.Delete(obj)
	x.sink.about(Store, "Delete", obj, "", err)
	return err
}

// Replace traces the whole content.
func (x indexer) Replace(list []any, resourceVersion string) error {
	err := x.Indexer.Replace(list, resourceVersion)
	x.sink.collection(Store, "Replace", resourceVersion, fmt.Sprintf("%d items", len(list)), err)
	return err
}

type transactionIndexer struct {
	indexer
	transactions store.TransactionStore
}

// Transaction traces each change of the transaction that was made, and the error of the others.
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
