// SPDX-License-Identifier: Apache-2.0

package store

import "fmt"

// TransactionType says what a Transaction does.
type TransactionType string

const (
	// TransactionTypeAdd stores the object.
	TransactionTypeAdd TransactionType = "Add"
	// TransactionTypeUpdate stores the object.
	TransactionTypeUpdate TransactionType = "Update"
	// TransactionTypeDelete removes what has the object's key.
	TransactionTypeDelete TransactionType = "Delete"
)

// Transaction is one of several changes that are applied together.
//
// Source: tools/cache/store.go Transaction
type Transaction struct {
	Object any
	Type   TransactionType
}

// stores reports whether the object is put into the store.
func (t Transaction) stores() bool {
	return t.Type == TransactionTypeAdd || t.Type == TransactionTypeUpdate
}

// TransactionStore is a Store that applies many changes under one lock. What New and NewIndexer return is one.
//
// Source: tools/cache/store.go TransactionStore
type TransactionStore interface {
	// Transaction applies the changes in order; no reader sees a part of them. A change whose key or transform fails is
	// left out and named in the error, the others are made. The result is nil if all were made.
	Transaction(txns ...Transaction) *TransactionError
}

// TransactionError reports the changes that were left out of a transaction.
//
// Source: tools/cache/store.go TransactionError
type TransactionError struct {
	SuccessfulIndices []int // which changes were made, by their position
	TotalTransactions int
	Errors            []error // why the others were not, in their order
}

// Error counts the changes that were left out, and says why.
func (e *TransactionError) Error() string {
	return fmt.Sprintf("failed to execute (%d/%d) transactions failed due to: %v",
		e.TotalTransactions-len(e.SuccessfulIndices), e.TotalTransactions, e.Errors)
}

// Unwrap returns Errors.
func (e *TransactionError) Unwrap() []error { return e.Errors }

// Transaction applies the changes under one lock.
func (c *cache) Transaction(txns ...Transaction) *TransactionError {
	keyed := make([]ThreadSafeStoreTransaction, 0, len(txns))
	successful := make([]int, 0, len(txns))
	var errs []error
	for i, txn := range txns {
		key, obj, err := c.admit(txn)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		keyed = append(keyed, ThreadSafeStoreTransaction{Transaction{obj, txn.Type}, key})
		successful = append(successful, i)
	}
	c.storage.Transaction(keyed...)
	if len(errs) == 0 {
		return nil
	}
	return &TransactionError{SuccessfulIndices: successful, TotalTransactions: len(txns), Errors: errs}
}

// admit returns the key of a change, and the object to store.
func (c *cache) admit(txn Transaction) (key string, obj any, err error) {
	switch {
	case txn.stores():
		return c.keyAndTransform(txn.Object)
	case txn.Type == TransactionTypeDelete:
		key, err = c.key(txn.Object)
		return key, txn.Object, err
	}
	return "", nil, fmt.Errorf("unknown transaction type %q", txn.Type)
}
