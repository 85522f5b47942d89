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
// To use it, make a queue with [NewDeltaFIFO] or [NewRealFIFO], give it to a reflector as its
// store, and call Pop in a loop. Options.KnownObjects must be the store that the consumer fills; it
// is what makes a delete that no event reported visible. An informer does all of this.
//
// Read queue.go, options.go, deltafifo.go; then realfifo.go and batch.go. Both queues share
// base.go, preparer.go, counter.go and fifo.go. Then run go test -v -run Transcript ./deltafifo.
// Goroutines: none of its own; any number of producers, one consumer.
// Locking: one mutex per queue. The consumer's process function runs under it (a RealFIFO can be
// configured not to), and so do KnownObjects, Metrics and Reached; a transformer does not.
//
// Source: tools/cache/delta_fifo.go DeltaFIFO, tools/cache/the_real_fifo.go RealFIFO
package deltafifo

import (
	"slices"

	"example.com/informerstack/store"
)

// DeltaFIFO is a queue of keys, each with all changes of its object since the key was last popped.
// A key is queued at its first change; later changes do not move it.
//
//	queue    ns/a                            ns/b
//	         Added@1 Updated@3 Deleted@4     Added@2
//	number   7                               8
//
// Adding and popping take constant time. Replace and Resync are linear in the number of listed,
// queued and known objects. Every method may be called concurrently. Only Pop waits for items, but
// the methods that change the queue wait while a process function runs.
//
//	D1  a key is in numbers  <=>  it is in queue, once: numbers[key] is the number of its entry
//	D2  each entry of queue has a delta
//	D3  no two consecutive deltas of a key are both Deleted
//
// Source: tools/cache/delta_fifo.go DeltaFIFO
type DeltaFIFO struct {
	base
	listType DeltaType // what Replace queues: Replaced or Sync

	// base.mu guards the fields below.
	queue   fifo[entry]
	numbers map[string]uint64 // as base.counter counts the entries
}

// entry is a queued key and all changes of its object.
type entry struct {
	key    string
	deltas Deltas
}

var (
	_ Queue       = (*DeltaFIFO)(nil)
	_ DoneChecker = (*DeltaFIFO)(nil)
)

// NewDeltaFIFO returns an empty queue. The zero value of opts is usable.
func NewDeltaFIFO(opts Options) *DeltaFIFO {
	f := &DeltaFIFO{listType: Sync, numbers: map[string]uint64{}}
	if opts.EmitDeltaTypeReplaced {
		f.listType = Replaced
	}
	f.init(opts, "DeltaFIFO")
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
	f.counter.changed(received.obj)
	return nil
}

// Delete queues that obj, an object or a tombstone, was deleted. If the key is neither queued nor
// known, the delete was reported before, by a relist, and is dropped. It fails as Add does.
func (f *DeltaFIFO) Delete(obj any) error {
	key, err := f.preparer.keyOf(obj)
	if err != nil {
		return store.KeyError{Obj: obj, Err: err}
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
	f.counter.changed(obj)
	return nil
}

// concernsConsumerLocked reports whether the consumer knows key, or will know it when it has
// drained the queue.
func (f *DeltaFIFO) concernsConsumerLocked(key string) bool {
	if f.isQueuedLocked(key) {
		return true
	}
	if f.known == nil {
		return false
	}
	_, exists, err := f.known.GetByKey(key)
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
	if err := f.waitLocked(); err != nil {
		return nil, err
	}
	isInInitialList := !f.counter.isSynced()
	oldest := f.queue.items()[0]
	delete(f.numbers, oldest.key)
	if f.queue.pop(1) {
		f.numbers = map[string]uint64{} // a built-in map does not shrink
	}
	var deltas any = oldest.deltas
	err := f.processLocked("DeltaFIFO Pop Process", oldest.key, 1, false, func() error {
		return process(deltas, isInInitialList)
	})
	return deltas, err
}

// Replace queues what a LIST returned: each listed object exists, and every other object that is
// queued or known is gone.
//
//  1. Listed objects, in list order, as Replaced (or Sync, see Options).
//  2. Keys that were queued and are not listed: Deleted, with a tombstone of the newest queued
//     object.
//  3. Keys that are known, and neither listed nor queued: Deleted, with a tombstone of the known
//     object, or of nil if it cannot be read.
//
// If this is the queue's first change, HasSynced waits for all of it; if it queues nothing, the
// queue has synced at once. The error is a store.KeyError or the transformer's; then the queue is
// unchanged. Reached is called with resourceVersion once the whole list is processed.
func (f *DeltaFIFO) Replace(list []any, resourceVersion string) error {
	received, err := f.preparer.prepareAll(list)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counter.replace()
	// Make room for the list, so that the queue does not grow step by step and putLocked does not
	// move queuedBefore.
	f.queue.slots = slices.Grow(f.queue.slots, len(received))
	if len(f.numbers) == 0 && len(received) > longQueue {
		f.numbers = make(map[string]uint64, len(received))
	}
	queuedBefore := f.queue.items()
	listed := make(map[string]struct{}, len(received))
	for _, r := range received {
		listed[r.key] = struct{}{}
		f.putLocked(r.key, Delta{f.listType, r.obj})
	}
	for _, e := range queuedBefore {
		if _, isListed := listed[e.key]; !isListed {
			f.putLocked(e.key, tombstone(e.key, e.deltas.Newest().Object))
		}
	}
	f.deleteKnownLocked(f.isQueuedLocked, f.putLocked) // listed objects are queued by now
	f.counter.listed(resourceVersion)
	return nil
}

// Resync queues a Sync for each known object without queued deltas: a queued change is newer than
// the known object. Without KnownObjects it does nothing. Known objects without a key are skipped
// and reported together as an error.
func (f *DeltaFIFO) Resync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.resyncLocked(f.isQueuedLocked, f.putLocked)
}

func (f *DeltaFIFO) isQueuedLocked(key string) bool {
	_, queued := f.numbers[key]
	return queued
}

// putLocked adds a delta to those of key, and queues the key if it is not queued.
func (f *DeltaFIFO) putLocked(key string, d Delta) {
	if number, queued := f.numbers[key]; queued {
		e := &f.queue.items()[number-f.counter.popped]
		e.deltas = appendDelta(e.deltas, d)
		return
	}
	f.numbers[key] = f.counter.queued
	f.queue.push(entry{key, Deltas{d}})
	f.counter.queued++
	f.cond.Signal()
	f.reportDepthLocked()
}

// appendDelta adds d to deltas, which are not empty. It merges two consecutive deletes into one:
// the first, which is nearer to the event, unless it is a tombstone, which has less information.
func appendDelta(deltas Deltas, d Delta) Deltas {
	last := deltas.Newest()
	if last.Type != Deleted || d.Type != Deleted {
		return append(deltas, d)
	}
	if _, ok := last.Object.(store.DeletedFinalStateUnknown); ok {
		*last = d
	}
	return deltas
}
