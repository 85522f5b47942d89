// SPDX-License-Identifier: Apache-2.0

package store

import (
	"fmt"
	"slices"
)

// TransactionType is the effect of a Transaction.
type TransactionType string

const (
	// TransactionTypeAdd stores the object.
	TransactionTypeAdd TransactionType = "Add"
	// TransactionTypeUpdate stores the object.
	TransactionTypeUpdate TransactionType = "Update"
	// TransactionTypeDelete removes the object that has the object's key.
	TransactionTypeDelete TransactionType = "Delete"
)

// Transaction is one of several changes that are applied together.
//
// Source: tools/cache/store.go Transaction
type Transaction struct {
	Object any
	Type   TransactionType
}

// TransactionStore is a Store that applies many changes under one lock. The result of New is one.
//
// Source: tools/cache/store.go TransactionStore
type TransactionStore interface {
	// Transaction applies the changes in order; no reader sees a part of them. Only the last of
	// several changes of a key is indexed. A change without a key is left out and named in the
	// error; the others are made. The result is nil if all were made.
	Transaction(txns ...Transaction) *TransactionError
}

// TransactionError reports the changes that were left out of a transaction.
//
// Source: tools/cache/store.go TransactionError
type TransactionError struct {
	SuccessfulIndices []int // positions of the changes that were made
	TotalTransactions int
	Errors            []error // one for each change that was left out, in their order
}

// Error counts the changes that were left out, and names the causes.
func (e *TransactionError) Error() string {
	return fmt.Sprintf("failed to execute (%d/%d) transactions failed due to: %v",
		e.TotalTransactions-len(e.SuccessfulIndices), e.TotalTransactions, e.Errors)
}

// Unwrap returns Errors.
func (e *TransactionError) Unwrap() []error { return e.Errors }

// Transaction applies the changes under one lock.
func (c *cache) Transaction(txns ...Transaction) *TransactionError {
	writes := make([]write, 0, len(txns))
	successful := make([]int, 0, len(txns))
	var errs []error
	for i, txn := range txns {
		w, err := c.write(txn)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		writes = append(writes, w)
		successful = append(successful, i)
	}
	if len(writes) > 0 {
		c.apply(lastOfEachKey(writes)...)
	}
	if len(errs) == 0 {
		return nil
	}
	return &TransactionError{successful, len(txns), errs}
}

// write returns the write that txn asks for.
func (c *cache) write(txn Transaction) (write, error) {
	switch txn.Type {
	case TransactionTypeAdd, TransactionTypeUpdate, TransactionTypeDelete:
		key, err := c.keyFunc(txn.Object)
		if err != nil {
			return write{}, KeyError{txn.Object, err}
		}
		return write{key, txn.Object, txn.Type == TransactionTypeDelete}, nil
	}
	return write{}, fmt.Errorf("unknown transaction type %q", txn.Type)
}

// lastOfEachKey leaves out the writes before the last one of their key. No reader would see them.
func lastOfEachKey(writes []write) []write {
	seen := make(map[string]bool, len(writes))
	slices.Reverse(writes)
	writes = slices.DeleteFunc(writes, func(w write) bool {
		before := seen[w.key]
		seen[w.key] = true
		return before
	})
	slices.Reverse(writes)
	return writes
}
