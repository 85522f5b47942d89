// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"errors"
	"fmt"

	"example.com/informerstack/internal/helpers/objects"
)

// transformingStore is an Indexer that stores the results of a transform. An object passes keyFunc,
// then the transformer, then its result is stored under the object's key. If one of the first two
// fails, the store is as before.
//
// Source: tools/cache/store.go WithTransformer
type transformingStore struct {
	*threadSafeMap
	keyFunc     KeyFunc
	transformer TransformFunc
}

var (
	_ Indexer          = (*transformingStore)(nil)
	_ TransactionStore = (*transformingStore)(nil)
)

// Add implements Store.
func (s *transformingStore) Add(obj any) error { return s.Update(obj) }

// Update implements Store.
func (s *transformingStore) Update(obj any) error {
	p, err := s.transform(obj)
	if err == nil {
		err = s.cache.Update(p)
	}
	return err
}

// Delete implements Store. It does not transform obj.
func (s *transformingStore) Delete(obj any) error {
	key, err := s.key(obj)
	if err == nil {
		s.DeleteWithObject(key, obj)
	}
	return err
}

// Replace implements Store.
func (s *transformingStore) Replace(list []any, resourceVersion string) error {
	pairs := make([]any, len(list))
	for i, obj := range list {
		p, err := s.transform(obj)
		if err != nil {
			return err
		}
		pairs[i] = p
	}
	return s.cache.Replace(pairs, resourceVersion)
}

// Get implements Store.
func (s *transformingStore) Get(obj any) (item any, exists bool, err error) {
	key, err := s.key(obj)
	if err != nil {
		return nil, false, err
	}
	return s.GetByKey(key)
}

// GetByKey implements Store.
func (s *transformingStore) GetByKey(key string) (item any, exists bool, err error) {
	item, exists = s.threadSafeMap.Get(key)
	return item, exists, nil
}

// Transaction implements TransactionStore.
func (s *transformingStore) Transaction(txns ...Transaction) *TransactionError {
	pairs := make([]Transaction, 0, len(txns))
	successful := make([]int, 0, len(txns))
	var errs []error
	for i, txn := range txns {
		p, err := s.admit(txn)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		pairs = append(pairs, Transaction{Object: p, Type: txn.Type})
		successful = append(successful, i)
	}
	s.cache.Transaction(pairs...)
	if len(errs) == 0 {
		return nil
	}
	return &TransactionError{
		SuccessfulIndices: successful, TotalTransactions: len(txns), Errors: errs,
	}
}

func (s *transformingStore) admit(txn Transaction) (pair, error) {
	switch txn.Type {
	case TransactionTypeAdd, TransactionTypeUpdate:
		return s.transform(txn.Object)
	case TransactionTypeDelete:
		key, err := s.key(txn.Object)
		return pair{key, txn.Object}, err
	}
	return pair{}, fmt.Errorf("unknown transaction type %q", txn.Type)
}

var errTransformedToNil = errors.New("the result is nil")

// transform returns the key of obj and the object to store.
func (s *transformingStore) transform(obj any) (pair, error) {
	key, err := s.key(obj)
	if err != nil {
		return pair{}, err
	}
	transformed, err := s.transformer(obj)
	if err == nil && objects.IsNil(transformed) {
		err = errTransformedToNil
	}
	if err != nil {
		return pair{}, fmt.Errorf("transforming: %w", err)
	}
	return pair{key, transformed}, nil
}

func (s *transformingStore) key(obj any) (string, error) {
	key, err := s.keyFunc(obj)
	if err != nil {
		return "", KeyError{Obj: obj, Err: err}
	}
	return key, nil
}
