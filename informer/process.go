// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"fmt"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/store"
)

// deltaProcessor brings what a queue hands out into a store, and tells emit what that changed.
//
// Laws:
//
//	D1  the store decides: what it already holds is updated, what it does not hold is added, whatever the delta is called
//	D2  emit is called after the store has changed: a handler never looks an object up and finds an older one
//	D3  a delta that fails changes nothing and emits nothing
//
// Of several deltas that one call processes, each is stored and emitted before the next; a batch, and a whole list, are
// stored before the first is emitted. One goroutine at a time may process.
//
// Source: tools/cache/controller.go processDeltas, tools/cache/controller.go processDeltasInBatch
type deltaProcessor struct {
	store store.Store
	keyOf store.KeyFunc
	// emit may change the slice's elements and must not keep the slice.
	emit func([]change)

	scratch []change // empty between calls
}

// process is a deltafifo.PopProcessFunc.
func (p *deltaProcessor) process(obj any, isInInitialList bool) error {
	deltas, ok := obj.(deltafifo.Deltas)
	if !ok {
		return fmt.Errorf("process %T: want Deltas", obj)
	}
	for i := range deltas {
		if err := p.processOne(&deltas[i], isInInitialList); err != nil {
			return err
		}
	}
	return nil
}

func (p *deltaProcessor) processOne(d *deltafifo.Delta, isInInitialList bool) error {
	switch d.Type {
	case deltafifo.Added, deltafifo.Updated, deltafifo.Replaced, deltafifo.Sync:
		return p.put(d, isInInitialList)
	case deltafifo.Deleted:
		return p.delete(d.Object)
	case deltafifo.ReplacedAll:
		return p.replaceAll(d.Object, isInInitialList)
	case deltafifo.SyncAll:
		return p.syncAll()
	case deltafifo.Bookmark:
		return p.bookmark(d.Object)
	}
	return fmt.Errorf("process delta of type %q: unknown type", d.Type)
}

// put adds the object or updates it.
func (p *deltaProcessor) put(d *deltafifo.Delta, isInInitialList bool) error {
	oldObj, exists, err := p.store.Get(d.Object)
	if err == nil && exists {
		err = p.store.Update(d.Object)
	} else {
		err = p.store.Add(d.Object)
	}
	if err != nil {
		return fmt.Errorf("store object of %s delta: %w", d.Type, err)
	}
	p.emitOne(putChange(d, oldObj, exists, isInInitialList))
	return nil
}

// delete removes the object, or the one that a tombstone names. It is emitted even if the store did not hold it.
func (p *deltaProcessor) delete(obj any) error {
	if err := p.store.Delete(obj); err != nil {
		return fmt.Errorf("remove object of Deleted delta: %w", err)
	}
	p.emitOne(remove(obj))
	return nil
}

// replaceAll makes the store hold exactly a list. Deletes are emitted first, then the list in its own order.
func (p *deltaProcessor) replaceAll(obj any, isInInitialList bool) error {
	info, ok := obj.(deltafifo.ReplacedAllInfo)
	if !ok {
		return fmt.Errorf("process ReplacedAll delta: object is a %T", obj)
	}
	listed := make(map[string]struct{}, len(info.Objects))
	for _, obj := range info.Objects {
		key, err := p.keyOf(obj)
		if err != nil {
			return fmt.Errorf("process ReplacedAll delta: %w", store.KeyError{Obj: obj, Err: err})
		}
		listed[key] = struct{}{}
	}
	changes := make([]change, 0, len(info.Objects))
	for _, key := range p.store.ListKeys() {
		if _, ok := listed[key]; !ok {
			oldObj, _, _ := p.store.GetByKey(key) // without an object the tombstone has the key alone
			changes = append(changes, remove(store.DeletedFinalStateUnknown{Key: key, Obj: oldObj}))
		}
	}
	for _, obj := range info.Objects {
		oldObj, exists, err := p.store.Get(obj)
		d := deltafifo.Delta{Type: deltafifo.ReplacedAll, Object: obj}
		changes = append(changes, putChange(&d, oldObj, err == nil && exists, isInInitialList))
	}
	if err := p.store.Replace(info.Objects, info.ResourceVersion); err != nil {
		return fmt.Errorf("process ReplacedAll delta: %w", err)
	}
	p.emit(changes)
	return nil
}

// syncAll replays the store.
func (p *deltaProcessor) syncAll() error {
	objs := p.store.List()
	changes := make([]change, 0, len(objs))
	for _, obj := range objs {
		changes = append(changes, update(obj, obj, true))
	}
	p.emit(changes)
	return nil
}

func (p *deltaProcessor) bookmark(obj any) error {
	info, ok := obj.(deltafifo.BookmarkInfo)
	if !ok {
		return fmt.Errorf("process Bookmark delta: object is a %T", obj)
	}
	p.store.Bookmark(info.ResourceVersion)
	return nil
}

// processBatch is a deltafifo.ProcessBatchFunc. A store with transactions takes the whole batch under one lock; of one that
// fails in part, what succeeded is emitted.
func (p *deltaProcessor) processBatch(deltas []deltafifo.Delta, isInInitialList bool) error {
	transactions, ok := p.store.(store.TransactionStore)
	if !ok {
		var errs []error
		for i := range deltas {
			errs = append(errs, p.processOne(&deltas[i], isInInitialList))
		}
		return errors.Join(errs...)
	}
	txns := make([]store.Transaction, 0, len(deltas))
	changes := p.scratch[:0]
	defer func() { clear(changes); p.scratch = changes[:0] }()
	for i := range deltas {
		txn, c, err := p.prepare(&deltas[i], isInInitialList)
		if err != nil {
			return err
		}
		txns, changes = append(txns, txn), append(changes, c)
	}
	failed := transactions.Transaction(txns...)
	if failed == nil {
		p.emit(changes)
		return nil
	}
	done := make([]change, 0, len(failed.SuccessfulIndices))
	for _, i := range failed.SuccessfulIndices {
		done = append(done, changes[i])
	}
	p.emit(done)
	return fmt.Errorf("store batch of %d deltas: %w", len(deltas), failed)
}

// prepare says what a delta will do to the store.
func (p *deltaProcessor) prepare(d *deltafifo.Delta, isInInitialList bool) (store.Transaction, change, error) {
	switch d.Type {
	case deltafifo.Added, deltafifo.Updated, deltafifo.Replaced, deltafifo.Sync:
		oldObj, exists, err := p.store.Get(d.Object)
		exists = exists && err == nil
		txn := store.Transaction{Type: store.TransactionTypeAdd, Object: d.Object}
		if exists {
			txn.Type = store.TransactionTypeUpdate
		}
		return txn, putChange(d, oldObj, exists, isInInitialList), nil
	case deltafifo.Deleted:
		return store.Transaction{Type: store.TransactionTypeDelete, Object: d.Object}, remove(d.Object), nil
	}
	return store.Transaction{}, change{}, fmt.Errorf("process delta of type %q: not for a batch", d.Type)
}

func putChange(d *deltafifo.Delta, oldObj any, exists, isInInitialList bool) change {
	if exists {
		return update(oldObj, d.Object, d.Type == deltafifo.Sync)
	}
	return add(d.Object, isInInitialList)
}

// emitOne emits without allocating.
func (p *deltaProcessor) emitOne(c change) {
	p.scratch = append(p.scratch[:0], c)
	p.emit(p.scratch)
	clear(p.scratch)
}
