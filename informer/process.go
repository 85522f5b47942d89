// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"fmt"
	"sync"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/store"
)

// deltaProcessor applies the deltas of a queue to a store, and emits the resulting changes.
//
//	D1  the store decides: an object that it holds is updated, another object is added, regardless
//	    of the delta's type
//	D2  a change is emitted after the store has changed, so that a handler never reads an older
//	    object; the last change of a call is emitted after stored was called
//	D3  a delta that fails changes nothing and emits nothing; lost is called
//	D4  a bookmark does not move the store's version while incomplete, from the failure of a delta
//	    until a whole list is stored
//
// The deltas of one object are stored and emitted one after the other. A batch, and a whole list,
// are stored before the first change is emitted.
//
// Source: tools/cache/controller.go processDeltas, tools/cache/controller.go processDeltasInBatch
type deltaProcessor struct {
	store store.Store
	// stored is called when all popped deltas are in the store.
	stored func()
	// emit must not keep the slice.
	emit func([]change)
	// lost is called when a delta could not be applied, before HasSynced of the queue can change.
	lost func()

	incomplete bool        // see D4
	mu         sync.Locker // held while deltas are processed
}

// ProcessDeltas returns the process functions of a queue whose deltas change objects. Each function
// stores the deltas, then calls handler for each change, in the goroutine that pops: a slow handler
// delays the queue.
//
// Source: tools/cache/controller.go processDeltas
func ProcessDeltas(
	objects store.Store, handler ResourceEventHandler,
) (deltafifo.PopProcessFunc, deltafifo.ProcessBatchFunc) {
	p := &deltaProcessor{
		mu:     new(sync.Mutex),
		store:  objects,
		stored: func() {},
		lost:   func() {},
		emit: func(changes []change) {
			for i := range changes {
				changes[i].deliver(handler)
			}
		},
	}
	return p.process, p.processBatch
}

// process is a deltafifo.PopProcessFunc. It stores and emits the deltas one by one. A delta that
// fails does not affect others.
func (p *deltaProcessor) process(obj any, isInInitialList bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	complete := false
	defer func() {
		if !complete {
			p.noteLoss()
		}
	}()
	deltas, ok := obj.(deltafifo.Deltas)
	if !ok {
		return fmt.Errorf("process %T: want Deltas", obj)
	}
	var errs []error
	for i := range deltas {
		changes, err := p.apply(&deltas[i], isInInitialList)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if i == len(deltas)-1 && len(errs) == 0 {
			p.stored()
		}
		p.emit(changes)
	}
	complete = len(errs) == 0
	return errors.Join(errs...)
}

// noteLoss notes that a call failed or panicked.
func (p *deltaProcessor) noteLoss() {
	p.incomplete = true
	p.lost()
}

// apply applies a delta to the store and returns the changes to emit.
func (p *deltaProcessor) apply(d *deltafifo.Delta, isInInitialList bool) ([]change, error) {
	switch d.Type {
	case deltafifo.Added, deltafifo.Updated, deltafifo.Replaced, deltafifo.Sync:
		oldObj, exists, err := p.store.Get(d.Object)
		exists = exists && err == nil
		if exists {
			err = p.store.Update(d.Object)
		} else {
			err = p.store.Add(d.Object)
		}
		if err != nil {
			return nil, fmt.Errorf("store object of %s delta: %w", d.Type, err)
		}
		return []change{put(d, oldObj, exists, isInInitialList)}, nil
	case deltafifo.Deleted: // emitted even if the store does not hold the object
		if err := p.store.Delete(d.Object); err != nil {
			return nil, fmt.Errorf("remove object of Deleted delta: %w", err)
		}
		return []change{remove(d.Object)}, nil
	case deltafifo.ReplacedAll:
		return p.replaceAll(d.Object, isInInitialList)
	case deltafifo.SyncAll:
		return p.syncAll(), nil
	case deltafifo.Bookmark:
		return nil, p.bookmark(d.Object)
	}
	return nil, fmt.Errorf("process delta of type %q: unknown type", d.Type)
}

// replaceAll replaces the content of the store by a list. Deletes are emitted first, then the
// objects in list order. The last one counts if a list contains an object twice.
func (p *deltaProcessor) replaceAll(obj any, isInInitialList bool) ([]change, error) {
	info, ok := obj.(deltafifo.ReplacedAllInfo)
	if !ok {
		return nil, fmt.Errorf("process ReplacedAll delta: object is a %T", obj)
	}
	listed := make(map[string]int, len(info.Objects))
	repeated := map[int]bool{}
	for i, obj := range info.Objects {
		key, err := store.DeletionHandlingMetaNamespaceKeyFunc(obj)
		if err != nil {
			err = store.KeyError{Obj: obj, Err: err}
			return nil, fmt.Errorf("process ReplacedAll delta: %w", err)
		}
		if earlier, ok := listed[key]; ok {
			repeated[earlier] = true
		}
		listed[key] = i
	}
	changes := make([]change, 0, len(info.Objects))
	for _, key := range p.store.ListKeys() {
		if _, ok := listed[key]; !ok {
			oldObj, _, _ := p.store.GetByKey(key) // a tombstone may have no object
			changes = append(changes, remove(store.DeletedFinalStateUnknown{Key: key, Obj: oldObj}))
		}
	}
	for i, obj := range info.Objects {
		if repeated[i] {
			continue
		}
		oldObj, exists, err := p.store.Get(obj)
		d := deltafifo.Delta{Type: deltafifo.ReplacedAll, Object: obj}
		changes = append(changes, put(&d, oldObj, err == nil && exists, isInInitialList))
	}
	if err := p.store.Replace(info.Objects, info.ResourceVersion); err != nil {
		return nil, fmt.Errorf("process ReplacedAll delta: %w", err)
	}
	p.incomplete = false
	return changes, nil
}

// syncAll returns an update of every object with itself.
func (p *deltaProcessor) syncAll() []change {
	objs := p.store.List()
	changes := make([]change, 0, len(objs))
	for _, obj := range objs {
		changes = append(changes, change{kind: updated, oldObj: obj, newObj: obj, resync: true})
	}
	return changes
}

func (p *deltaProcessor) bookmark(obj any) error {
	info, ok := obj.(deltafifo.BookmarkInfo)
	if !ok {
		return fmt.Errorf("process Bookmark delta: object is a %T", obj)
	}
	if !p.incomplete {
		p.store.Bookmark(info.ResourceVersion)
	}
	return nil
}

// processBatch is a deltafifo.ProcessBatchFunc. If the store has transactions, it stores the batch
// under one lock. If some deltas fail, the changes of the others are emitted.
func (p *deltaProcessor) processBatch(deltas []deltafifo.Delta, isInInitialList bool) error {
	transactions, ok := p.store.(store.TransactionStore)
	if !ok {
		return p.process(deltafifo.Deltas(deltas), isInInitialList)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	complete := false
	defer func() {
		if !complete {
			p.noteLoss()
		}
	}()
	txns := make([]store.Transaction, 0, len(deltas))
	changes := make([]change, 0, len(deltas))
	for i := range deltas {
		txn, c, err := p.prepare(&deltas[i], isInInitialList)
		if err != nil {
			return err
		}
		txns, changes = append(txns, txn), append(changes, c)
	}
	if failed := transactions.Transaction(txns...); failed != nil {
		for _, i := range failed.SuccessfulIndices {
			p.emit(changes[i : i+1])
		}
		return fmt.Errorf("store batch of %d deltas: %w", len(deltas), failed)
	}
	complete = true
	p.stored()
	p.emit(changes)
	return nil
}

// prepare returns the transaction of a delta, and the change to emit after it.
func (p *deltaProcessor) prepare(
	d *deltafifo.Delta, isInInitialList bool,
) (store.Transaction, change, error) {
	switch d.Type {
	case deltafifo.Added, deltafifo.Updated, deltafifo.Replaced, deltafifo.Sync:
		oldObj, exists, err := p.store.Get(d.Object)
		exists = exists && err == nil
		txn := store.Transaction{Type: store.TransactionTypeAdd, Object: d.Object}
		if exists {
			txn.Type = store.TransactionTypeUpdate
		}
		return txn, put(d, oldObj, exists, isInInitialList), nil
	case deltafifo.Deleted:
		txn := store.Transaction{Type: store.TransactionTypeDelete, Object: d.Object}
		return txn, remove(d.Object), nil
	}
	err := fmt.Errorf("process delta of type %q: not for a batch", d.Type)
	return store.Transaction{}, change{}, err
}

// put returns the change of a stored object, which replaces oldObj if exists is true.
func put(d *deltafifo.Delta, oldObj any, exists, isInInitialList bool) change {
	if !exists {
		return add(d.Object, isInInitialList)
	}
	resync := d.Type == deltafifo.Sync
	return change{kind: updated, oldObj: oldObj, newObj: d.Object, resync: resync}
}
