// SPDX-License-Identifier: Apache-2.0

// Package deltafifo queues changes for one consumer, which misses none and sees the changes of each
// object in order.
//
//	reflector -> [deltafifo] -> informer
//
// A channel would block the producer or drop changes. A queue of keys would lose the intermediate
// changes, above all deletes. A DeltaFIFO delivers, key by key, all changes of one object since the
// consumer last popped that key. A RealFIFO delivers every change of every object in the order of
// arrival.
//
// Read queue.go, deltafifo.go; then realfifo.go and batch.go. Both queues share base.go,
// preparer.go and counter.go. Then run go test -v -run Transcript ./deltafifo.
// Goroutines: none of its own; any number of producers, one consumer.
// Locking: one mutex per queue. The consumer's process function runs under it (a RealFIFO can be
// configured not to), and so do KnownObjects, Metrics and Reached; a transformer does not.
//
// Source: tools/cache/delta_fifo.go DeltaFIFO, tools/cache/the_real_fifo.go RealFIFO
package deltafifo

import (
	"errors"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"example.com/informerstack/store"
)

// DeltaFIFOOptions configures a DeltaFIFO. The zero value is usable.
//
// Source: tools/cache/delta_fifo.go DeltaFIFOOptions
type DeltaFIFOOptions struct {
	// Logger gets the queue's name added. Default: klog.Background().
	Logger *klog.Logger
	// Name is for messages. Default: "DeltaFIFO".
	Name string
	// KeyFunction computes the keys of objects. Default: store.MetaNamespaceKeyFunc.
	KeyFunction store.KeyFunc
	// KnownObjects is the consumer's copy of the objects. Without it, Replace cannot report the
	// loss of an object whose deltas were all popped, Delete of such an object is dropped, and
	// Resync is a no-op.
	KnownObjects KeyListerGetter
	// EmitDeltaTypeReplaced makes Replace queue listed objects as Replaced. Otherwise it queues
	// them as Sync, and a relist looks like a resync.
	EmitDeltaTypeReplaced bool
	// Transformer changes each received object before it is queued. Tombstones, and objects that
	// a Resync replays, are not transformed. It runs without the queue's lock and must not add to
	// this queue.
	Transformer store.TransformFunc
	// Metrics receives the queue's numbers.
	Metrics Metrics
	// Reached, if set, is called when every change up to resourceVersion has been processed. See
	// Received.
	Reached func(resourceVersion string, asOf time.Time)
}

// DeltaFIFO is a queue of keys, each with all changes of its object since the key was last popped.
// A key is queued at its first change; later changes do not move it.
//
//	queue   ns/a                            ns/b
//	items   Added@1 Updated@3 Deleted@4     Added@2
//
// Adding and popping take constant time. Replace and Resync are linear in the number of listed,
// queued and known objects. Every method may be called concurrently. Only Pop waits for items, but
// the methods that change the queue wait while a process function runs.
//
//	D1  a key is in items  <=>  it is in queue, once
//	D2  items[key] is not empty
//	D3  no two consecutive deltas of a key are both Deleted
//
// Source: tools/cache/delta_fifo.go DeltaFIFO
type DeltaFIFO struct {
	base
	knownObjects KeyListerGetter // may be nil
	listType     DeltaType       // what Replace queues: Replaced or Sync

	// base.mu guards the fields below.
	items map[string]Deltas
	queue fifo[string]
}

var (
	_ Queue       = (*DeltaFIFO)(nil)
	_ DoneChecker = (*DeltaFIFO)(nil)
)

// NewDeltaFIFO returns an empty queue.
func NewDeltaFIFO(opts DeltaFIFOOptions) *DeltaFIFO {
	if opts.Name == "" {
		opts.Name = "DeltaFIFO"
	}
	f := &DeltaFIFO{knownObjects: opts.KnownObjects, listType: Sync, items: map[string]Deltas{}}
	if opts.EmitDeltaTypeReplaced {
		f.listType = Replaced
	}
	f.preparer.keyFunc, f.preparer.transformer = opts.KeyFunction, opts.Transformer
	f.metrics = opts.Metrics
	f.init(opts.Name, opts.Logger, opts.Reached)
	return f
}

// KeyOf computes the key of an object, of a tombstone, or of the newest object among Deltas.
func (f *DeltaFIFO) KeyOf(obj any) (string, error) { return f.preparer.keyOf(obj) }

// Add queues that obj was created. It fails with a store.KeyError or with the transformer's
// error; then nothing is queued.
func (f *DeltaFIFO) Add(obj any) error { return f.receive(Added, obj) }

// Update queues that obj was changed. It fails as Add does.
func (f *DeltaFIFO) Update(obj any) error { return f.receive(Updated, obj) }

func (f *DeltaFIFO) receive(t DeltaType, obj any) error {
	received, err := f.preparer.prepare(obj)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counter.begin(0)
	if err != nil {
		return err
	}
	f.putLocked(received.key, Delta{t, received.obj})
	f.changedLocked(received.obj)
	return nil
}

// Delete queues that obj, an object or a tombstone, was deleted. If the key is neither queued nor
// known, the delete was reported before, by a relist, and is dropped. It fails as Add does.
func (f *DeltaFIFO) Delete(obj any) error {
	key, err := f.preparer.mustKey(obj)
	if err != nil {
		return err
	}
	obj, err = f.preparer.transform(key, obj)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counter.begin(0)
	if !f.concernsConsumerLocked(key) {
		return nil
	}
	if err != nil {
		return err
	}
	f.putLocked(key, Delta{Deleted, obj})
	f.changedLocked(obj)
	return nil
}

// concernsConsumerLocked reports whether the consumer knows key, or will know it when it has
// drained the queue.
func (f *DeltaFIFO) concernsConsumerLocked(key string) bool {
	if _, queued := f.items[key]; queued {
		return true
	}
	if f.knownObjects == nil {
		return false
	}
	_, exists, err := f.knownObjects.GetByKey(key)
	return exists || err != nil // if in doubt, an extra delete is better than a lost one
}

// Pop blocks until a key is queued, removes the oldest key with all its deltas, and runs process on
// them as Deltas. It returns those Deltas, which then belong to the caller, and process's error. An
// error does not put them back.
//
// process runs under the queue's lock: for other goroutines, the removal from the queue and the
// changes that process makes to the known objects are one step. So process must not call Pop,
// Close, IsClosed, or a method that changes the queue. If it panics, the key is gone and the queue
// stays usable. HasSynced changes after process has returned.
func (f *DeltaFIFO) Pop(process PopProcessFunc) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.queue.len() == 0 {
		if f.closed {
			return nil, ErrFIFOClosed
		}
		f.cond.Wait()
	}
	isInInitialList := !f.HasSynced()
	key := f.queue.items()[0]
	deltas := f.items[key]
	delete(f.items, key)
	if f.queue.pop(1) {
		f.items = map[string]Deltas{} // a built-in map does not shrink
	}
	f.setQueued(f.queue.len())

	var result any = deltas
	err := f.processLocked("DeltaFIFO Pop Process", key, f.queue.len(), 1, false, func() error {
		return process(result, isInInitialList)
	})
	return result, err
}

// Replace queues what a LIST returned: each listed object exists, and every other object that is
// queued or known is gone.
//
//  1. Listed objects, in list order, as Replaced (or Sync, see DeltaFIFOOptions).
//  2. Keys that were queued and are not listed: Deleted, with a tombstone of the newest queued
//     object.
//  3. Keys that are known, and neither listed nor queued: Deleted, with a tombstone of the known
//     object, or of nil if it cannot be read.
//
// If this is the queue's first change, HasSynced waits for all of it; if it queues nothing, the
// queue has synced at once. The error is a store.KeyError or the transformer's; then the queue is
// unchanged. The resourceVersion is not used: see Received.
func (f *DeltaFIFO) Replace(list []any, resourceVersion string) error {
	received, err := f.preparer.prepareAll(list)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counter.replace()
	f.reserveLocked(len(received))
	queuedBefore := f.queue.items()
	listed := make(map[string]struct{}, len(received))
	for _, r := range received {
		listed[r.key] = struct{}{}
		f.putLocked(r.key, Delta{f.listType, r.obj})
	}
	for _, key := range queuedBefore {
		if _, isListed := listed[key]; !isListed {
			f.putLocked(key, tombstone(key, f.items[key].Newest().Object))
		}
	}
	if f.knownObjects != nil {
		for _, key := range f.knownObjects.ListKeys() {
			if _, queued := f.items[key]; !queued { // listed objects are queued by now
				obj, _ := f.known(f.knownObjects, key)
				f.putLocked(key, tombstone(key, obj))
			}
		}
	}
	f.counter.begin(f.counter.queued)
	return nil
}

// reserveLocked makes room for a list, so that the queue does not grow step by step.
func (f *DeltaFIFO) reserveLocked(n int) {
	f.queue.slots = slices.Grow(f.queue.slots, n)
	if len(f.items) == 0 && n > longQueue {
		f.items = make(map[string]Deltas, n)
	}
}

// Resync queues a Sync for each known object without queued deltas: a queued change is newer than
// the known object. Without KnownObjects it does nothing. Known objects without a key are skipped
// and reported together as an error.
func (f *DeltaFIFO) Resync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.knownObjects == nil {
		return nil
	}
	var errs []error
	for _, known := range f.knownObjects.ListKeys() {
		obj, exists := f.known(f.knownObjects, known)
		if !exists {
			continue
		}
		key, err := f.preparer.mustKey(obj)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if _, queued := f.items[key]; !queued {
			f.putLocked(key, Delta{Sync, obj})
		}
	}
	return errors.Join(errs...)
}

// putLocked adds a delta to those of key, and queues the key if it is not queued.
func (f *DeltaFIFO) putLocked(key string, d Delta) {
	deltas, queued := f.items[key]
	f.items[key] = appendDelta(deltas, d)
	if queued {
		return
	}
	f.queue.push(key)
	f.counter.queued++
	f.setQueued(f.queue.len())
	f.cond.Signal()
}

// appendDelta adds d to deltas. It merges two consecutive deletes into one: the first, which is
// nearer to the event, unless the first is a tombstone, which has less information.
func appendDelta(deltas Deltas, d Delta) Deltas {
	last := deltas.Newest()
	if last == nil || last.Type != Deleted || d.Type != Deleted {
		return append(deltas, d)
	}
	if _, ok := last.Object.(store.DeletedFinalStateUnknown); ok {
		*last = d
	}
	return deltas
}
