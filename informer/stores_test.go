// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"example.com/informerstack/store"
)

// hooked is a store that calls before ahead of each write, and refuses the write if that returns an
// error. It has no transactions.
type hooked struct {
	store.Indexer
	before func() error
}

func (h hooked) write(write func() error) error {
	if err := h.before(); err != nil {
		return err
	}
	return write()
}

func (h hooked) Add(obj any) error { return h.write(func() error { return h.Indexer.Add(obj) }) }

func (h hooked) Update(obj any) error {
	return h.write(func() error { return h.Indexer.Update(obj) })
}

func (h hooked) Delete(obj any) error {
	return h.write(func() error { return h.Indexer.Delete(obj) })
}

func (h hooked) Replace(list []any, resourceVersion string) error {
	return h.write(func() error { return h.Indexer.Replace(list, resourceVersion) })
}

// hookedBatches is a hooked with transactions.
type hookedBatches struct{ hooked }

func (h hookedBatches) Transaction(txns ...store.Transaction) *store.TransactionError {
	var failed *store.TransactionError
	err := h.write(func() error {
		failed = h.Indexer.(store.TransactionStore).Transaction(txns...)
		return nil
	})
	if err != nil {
		return &store.TransactionError{TotalTransactions: len(txns), Errors: []error{err}}
	}
	return failed
}

// beforeWrites makes the informer's store a hooked.
func beforeWrites(before func() error) func(*Options) {
	return func(o *Options) {
		o.WrapIndexer = func(inner store.Indexer) store.Indexer { return hooked{inner, before} }
	}
}

// once returns a function for hooked that calls fail for the first write after *armed is set.
func once(armed *bool, fail func() error) func() error {
	return func() error {
		if !*armed {
			return nil
		}
		*armed = false
		return fail()
	}
}

// listed is a store that calls after when its content was read.
type listed struct {
	store.Indexer
	after func()
}

func (l listed) List() []any {
	defer l.after()
	return l.Indexer.List()
}
