// SPDX-License-Identifier: Apache-2.0

// Package deltafifo queues changes for one consumer, which misses no change and sees the changes of
// each object in order.
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
// Read queue.go, options.go, deltafifo.go; then realfifo.go. Both queues share base.go and
// progress.go. Then run go test -v -run Transcript ./deltafifo.
// Goroutines: none of its own; any number of producers, one consumer.
// Locking: one mutex per queue. The consumer's process function runs under it (a RealFIFO can be
// configured not to), and so do KnownObjects, Metrics and Reached; a transformer does not.
//
// Source: tools/cache/delta_fifo.go DeltaFIFO, tools/cache/the_real_fifo.go RealFIFO
package deltafifo

import (
	"time"

	"example.com/informerstack/store"
)

// DeltaFIFO is a queue of keys, each with all changes of its object since the key was last popped.
// A key is queued at its first change; later changes do not move it.
//
//	queue    ns/a, ns/b
//	items    ns/a: Added@1 Updated@3 Deleted@4
//	         ns/b: Added@2
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
	listType DeltaType // what Replace queues: Replaced or Sync

	// base.mu guards the fields below.
	items     map[string]Deltas
	queue     []entry
	mostItems int // since items was made
}

// longQueue is the number of keys for which a queue that becomes empty keeps its map.
const longQueue = 1024

// entry is a queued key.
type entry struct {
	key  string
	mark *version // see progress
}

var (
	_ Queue       = (*DeltaFIFO)(nil)
	_ DoneChecker = (*DeltaFIFO)(nil)
)

// NewDeltaFIFO returns an empty queue. The zero value of opts is usable.
func NewDeltaFIFO(opts Options) *DeltaFIFO {
	f := &DeltaFIFO{listType: Sync, items: map[string]Deltas{}}
	if opts.EmitDeltaTypeReplaced {
		f.listType = Replaced
	}
	f.init(opts, "DeltaFIFO")
	return f
}

// KeyOf computes the key of an object, of a tombstone, or of the newest object among Deltas.
func (f *DeltaFIFO) KeyOf(obj any) (string, error) { return f.keyOf(obj) }

// Add queues that obj was created. It fails with a store.KeyError or with the transformer's
// error; then nothing is queued.
func (f *DeltaFIFO) Add(obj any) error { return f.receive(Added, obj) }

// Update queues that obj was changed. It fails as Add does.
func (f *DeltaFIFO) Update(obj any) error { return f.receive(Updated, obj) }

func (f *DeltaFIFO) receive(t DeltaType, obj any) error {
	received, err := f.prepare(obj)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.progress.begin(0)
	if err != nil {
		return err
	}
	f.putLocked(received.key, Delta{t, received.obj})
	f.markLocked(f.progress.changed(received.obj))
	return nil
}

// Delete queues that obj, an object or a tombstone, was deleted. If the key is neither queued nor
// known, the delete was reported before, by a relist, and is dropped. It fails as Add does.
func (f *DeltaFIFO) Delete(obj any) error {
	key, err := f.keyOf(obj)
	if err != nil {
		return store.KeyError{Obj: obj, Err: err}
	}
	obj, err = f.transform(key, obj)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.progress.begin(0)
	if !f.concernsConsumerLocked(key) {
		return nil
	}
	if err != nil {
		return err
	}
	f.putLocked(key, Delta{Deleted, obj})
	f.markLocked(f.progress.changed(obj))
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
// Close, or a method that changes the queue. If it panics, the key is gone and the queue stays
// usable. HasSynced changes after process has returned.
func (f *DeltaFIFO) Pop(process PopProcessFunc) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.waitLocked(func() bool { return len(f.queue) == 0 }); err != nil {
		return nil, err
	}
	isInInitialList := !f.progress.isSynced()
	oldest := f.queue[0]
	f.queue = f.queue[1:]
	deltas := f.items[oldest.key]
	delete(f.items, oldest.key)
	if len(f.queue) == 0 && f.mostItems > longQueue {
		f.items, f.queue, f.mostItems = map[string]Deltas{}, nil, 0 // neither shrinks by itself
	}
	err := f.processLocked(processing{
		what: "DeltaFIFO Pop Process", key: oldest.key, n: 1, left: len(f.queue), mark: oldest.mark,
	}, func() error { return process(deltas, isInInitialList) })
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
	received, err := f.prepareAll(list)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.progress.repaired() {
		for i := range f.queue {
			f.queue[i].mark = nil
		}
	}
	queuedBefore := f.queue
	listed := make(map[string]struct{}, len(received))
	for _, r := range received {
		listed[r.key] = struct{}{}
		f.putLocked(r.key, Delta{f.listType, r.obj})
	}
	for _, e := range queuedBefore {
		if _, isListed := listed[e.key]; !isListed {
			f.putLocked(e.key, tombstone(e.key, f.items[e.key].Newest().Object))
		}
	}
	f.deleteKnownLocked(f.isQueuedLocked, f.putLocked) // listed objects are queued by now
	f.progress.begin(len(f.queue))
	f.markLocked(f.progress.received(resourceVersion, time.Time{}))
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

// Received notes that every change up to resourceVersion, which was current at asOf, has been
// queued. The queue calls Reached with both when all of them are processed, at once if nothing is
// queued. The resourceVersion of a server without resourceVersions is "".
//
// The queue may also call Reached with the resourceVersion of a queued change and a zero asOf. It
// does not call Reached for a change whose processing failed, or for later changes, until a Replace
// has come after the failure. Reached may run under the queue's lock and must not call the queue.
func (f *DeltaFIFO) Received(resourceVersion string, asOf time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.markLocked(f.progress.received(resourceVersion, asOf))
}

func (f *DeltaFIFO) isQueuedLocked(key string) bool {
	_, queued := f.items[key]
	return queued
}

// markLocked has v, unless it is nil, reported once all that is queued has been processed.
func (f *DeltaFIFO) markLocked(v *version) {
	switch newest := len(f.queue) - 1; {
	case v == nil:
	case newest >= 0:
		f.queue[newest].mark = v
	default:
		f.progress.await(v)
	}
}

// putLocked adds a delta to those of key, and queues the key if it is not queued.
func (f *DeltaFIFO) putLocked(key string, d Delta) {
	deltas, queued := f.items[key]
	f.items[key] = appendDelta(deltas, d)
	if queued {
		return
	}
	f.queue = append(f.queue, entry{key: key})
	f.mostItems = max(f.mostItems, len(f.items))
	f.cond.Signal()
	f.reportDepthLocked(len(f.queue))
}

// appendDelta adds d to deltas. It merges two consecutive deletes into one: the first, which is
// nearer to the event, unless it is a tombstone, which has less information.
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
