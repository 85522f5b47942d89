// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// restartProcessing is the pause before processing resumes after a panic that did not end the
// process.
const restartProcessing = time.Second

var errProcessPanicked = errors.New("processing a change panicked")

// Controller is the loop of an informer: a reflector fills a queue, and a process function consumes
// it. The first three fields are required.
//
// Source: tools/cache/controller.go Controller
type Controller struct {
	// Reflector lists and watches. Its store is Queue.
	Reflector *reflector.Reflector
	// Queue holds the changes between Reflector and Process.
	Queue deltafifo.Queue
	// Process consumes the items of Queue, in one goroutine. Its error is logged; the item is gone.
	Process deltafifo.PopProcessFunc
	// ProcessBatch consumes batches. It is used if it is set and Queue is a
	// deltafifo.QueueWithBatch.
	ProcessBatch deltafifo.ProcessBatchFunc
	// RelistLost makes Reflector list again when a process function failed or panicked.
	RelistLost bool
}

// Run lists, watches and processes until ctx is done. It returns when the reflector and a running
// process function have ended. Items that are still queued are not processed. It runs once.
func (c *Controller) Run(ctx context.Context) {
	// A panic of the process function passes through here. A deferred wait for the reflector would
	// block for ever and hide the panic.
	defer utilruntime.HandleCrashWithContext(ctx)
	context.AfterFunc(ctx, c.Queue.Close) // wakes Pop
	reflectorDone := make(chan struct{})
	go func() {
		defer close(reflectorDone)
		c.Reflector.Run(ctx)
	}()
	wait.UntilWithContext(ctx, c.processLoop, restartProcessing)
	<-reflectorDone
}

// processLoop pops and processes until ctx is done, or the queue is closed and empty.
func (c *Controller) processLoop(ctx context.Context) {
	batches, _ := c.Queue.(deltafifo.QueueWithBatch)
	if c.ProcessBatch == nil {
		batches = nil
	}
	panicked := true
	defer func() {
		if panicked {
			c.relist(errProcessPanicked)
		}
	}()
	for ctx.Err() == nil {
		var err error
		if batches != nil {
			err = batches.PopBatch(c.ProcessBatch, c.Process)
		} else {
			_, err = c.Queue.Pop(c.Process)
		}
		if errors.Is(err, deltafifo.ErrFIFOClosed) {
			break
		}
		if err != nil {
			klog.FromContext(ctx).Error(err, "Processing a change failed")
			c.relist(err)
		}
	}
	panicked = false
}

// relist asks for a relist because a change was lost. It is called after the queue has noted the
// failure: a list that arrives before that does not repair it.
func (c *Controller) relist(err error) {
	if c.RelistLost {
		c.Reflector.Relist(err)
	}
}

// deltaProcessor applies the deltas of a queue to a store, and emits the resulting changes.
//
//	D1  the store decides: an object that it holds is updated, another object is added, regardless
//	    of the delta's type
//	D2  a change is emitted after the store has changed, so that a handler never reads an older
//	    object; the last change of a call is emitted after stored was called
//	D3  a delta that fails changes nothing and emits nothing; the result is an error
//
// The deltas of one object are stored and emitted one after the other. A batch, and a whole list,
// are stored before the first change is emitted.
//
// Source: tools/cache/controller.go processDeltas, tools/cache/controller.go processDeltasInBatch
type deltaProcessor struct {
	mu    sync.Locker // held while deltas are stored and emitted
	store store.Store
	// stored is called with the number of deltas of a call, when all of them are in the store.
	stored func(deltas int)
	// emit is called with at most batchLen changes.
	emit func([]change)
}

// ProcessDeltas returns the process functions of a queue of changed objects. Each function
// stores the deltas, then calls handler for each change, in the goroutine that pops: a slow handler
// delays the queue.
//
// Source: tools/cache/controller.go processDeltas
func ProcessDeltas(
	objects store.Store, handler ResourceEventHandler,
) (deltafifo.PopProcessFunc, deltafifo.ProcessBatchFunc) {
	p := &deltaProcessor{
		mu:     &sync.Mutex{},
		store:  objects,
		stored: func(int) {},
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
	deltas, ok := obj.(deltafifo.Deltas)
	if !ok {
		return fmt.Errorf("process %T: want Deltas", obj)
	}
	var errs []error
	for i, d := range deltas {
		var changes []change
		var err error
		switch d.Type {
		case deltafifo.Added, deltafifo.Updated, deltafifo.Replaced, deltafifo.Sync:
			if oldObj, exists, getErr := p.store.Get(d.Object); getErr == nil && exists {
				err = p.store.Update(d.Object)
				changes = []change{{kind: updated, oldObj: oldObj, newObj: d.Object,
					resync: d.Type == deltafifo.Sync}}
			} else {
				err = p.store.Add(d.Object)
				changes = []change{{kind: added, newObj: d.Object, initial: isInInitialList}}
			}
		case deltafifo.Deleted: // emitted even if the store does not hold the object
			err = p.store.Delete(d.Object)
			changes = []change{{kind: deleted, newObj: d.Object}}
		case deltafifo.ReplacedAll:
			changes, err = p.replaceAll(d.Object, isInInitialList)
		case deltafifo.SyncAll:
			changes = p.syncAll()
		case deltafifo.Bookmark:
			err = p.bookmark(d.Object)
		default:
			err = errors.New("unknown type")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("process %s delta: %w", d.Type, err))
			continue
		}
		if i == len(deltas)-1 && len(errs) == 0 {
			p.stored(len(deltas))
		}
		for some := range slices.Chunk(changes, batchLen) {
			p.emit(some)
		}
	}
	return errors.Join(errs...)
}

// replaceAll replaces the content of the store by a list. Deletes are emitted first, then the
// objects in list order. The last one counts if a list contains an object twice.
func (p *deltaProcessor) replaceAll(obj any, isInInitialList bool) ([]change, error) {
	info, ok := obj.(deltafifo.ReplacedAllInfo)
	if !ok {
		return nil, fmt.Errorf("object is a %T", obj)
	}
	listed := make(map[string]int, len(info.Objects))
	repeated := map[int]bool{}
	for i, obj := range info.Objects {
		key, err := store.DeletionHandlingMetaNamespaceKeyFunc(obj)
		if err != nil {
			return nil, store.KeyError{Obj: obj, Err: err}
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
		changes = append(changes, p.put(obj, isInInitialList))
	}
	if err := p.store.Replace(info.Objects, info.ResourceVersion); err != nil {
		return nil, err
	}
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
		return fmt.Errorf("object is a %T", obj)
	}
	p.store.Bookmark(info.ResourceVersion)
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
	txns := make([]store.Transaction, 0, len(deltas))
	changes := make([]change, 0, len(deltas))
	for _, d := range deltas {
		switch d.Type {
		case deltafifo.Added, deltafifo.Updated, deltafifo.Replaced, deltafifo.Sync:
			c := p.put(d.Object, isInInitialList)
			c.resync = c.kind == updated && d.Type == deltafifo.Sync
			txn := store.Transaction{Type: store.TransactionTypeAdd, Object: d.Object}
			if c.kind == updated {
				txn.Type = store.TransactionTypeUpdate
			}
			txns, changes = append(txns, txn), append(changes, c)
		case deltafifo.Deleted:
			txn := store.Transaction{Type: store.TransactionTypeDelete, Object: d.Object}
			txns, changes = append(txns, txn), append(changes, remove(d.Object))
		default:
			return fmt.Errorf("process %s delta: not for a batch", d.Type)
		}
	}
	if failed := transactions.Transaction(txns...); failed != nil {
		for _, i := range failed.SuccessfulIndices {
			p.emit(changes[i : i+1])
		}
		return fmt.Errorf("store batch of %d deltas: %w", len(deltas), failed)
	}
	p.stored(len(deltas))
	for some := range slices.Chunk(changes, batchLen) {
		p.emit(some)
	}
	return nil
}

// put returns the change that storing obj will be.
func (p *deltaProcessor) put(obj any, isInInitialList bool) change {
	if oldObj, exists, err := p.store.Get(obj); err == nil && exists {
		return change{kind: updated, oldObj: oldObj, newObj: obj}
	}
	return add(obj, isInInitialList)
}
