// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/store"
)

// failing is a store of a caller that may fail to write.
type failing struct {
	store.Indexer
	err error
	txn *store.TransactionError
}

func (f *failing) Add(any) error                                            { return f.err }
func (f *failing) Update(any) error                                         { return f.err }
func (f *failing) Delete(any) error                                         { return f.err }
func (f *failing) Replace([]any, string) error                              { return f.err }
func (f *failing) Transaction(...store.Transaction) *store.TransactionError { return f.txn }

// C3: what the store has failed to write is not written.
func TestIndexer_CountsWhatWasWritten(t *testing.T) {
	inner := &failing{}
	c := newInformerCache(ByUID, 8, func() {})
	x := c.wrapIndexer(inner).(transactionIndexer)
	a, b := of(1, "ns/a", "5"), of(1, "ns/b", "5")
	begin := func() {
		c.assign(newShardSet(8))
		c.leftovers = newShardSet(8)
		c.assign(newShardSet(8, 1))
		c.listedAt(t, "7", a, b)
	}
	for _, err := range []error{errors.New("full"), nil} {
		inner.err = err
		for name, write := range map[string]func() error{
			"add": func() error { return x.Add(a) }, "update": func() error { return x.Update(a) },
			"delete": func() error { return x.Delete(a) },
		} {
			begin()
			assert.Equal(t, err, write())
			assert.Equal(t, err == nil, len(c.unwritten) == 1, name)
			assert.True(t, c.stored().empty(), name)
		}
		begin()
		assert.Equal(t, err, x.Replace([]any{a, b}, "7"))
		assert.Equal(t, err == nil, c.stored().has(1))
	}
	both := []store.Transaction{{Object: a}, {Object: b}}
	for _, test := range []struct {
		err       *store.TransactionError
		unwritten int
	}{
		{nil, 0}, {&store.TransactionError{SuccessfulIndices: []int{1}}, 1},
		{&store.TransactionError{}, 2},
	} {
		begin()
		inner.txn = test.err
		assert.Same(t, test.err, x.Transaction(both...))
		assert.Len(t, c.unwritten, test.unwritten)
		assert.Equal(t, test.unwritten == 0, c.stored().has(1))
	}
}
