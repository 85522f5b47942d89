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
// store, and call Pop in a loop. Options.KnownObjects must be the store that the consumer fills: it
// shows deletes that no event reported. An informer does all of this.
//
// Read queue.go, options.go, deltafifo.go; then realfifo.go. Both queues share handover.go,
// first.go and known.go. Then run go test -v -run Transcript ./deltafifo. Goroutines: none; any
// number of producers, one consumer. Locking: one mutex per queue. The consumer's process function
// runs under it (a RealFIFO can be configured not to), and so do KnownObjects and Metrics; a
// transformer does not.
//
// Source: tools/cache/delta_fifo.go DeltaFIFO, tools/cache/the_real_fifo.go RealFIFO
package deltafifo

import "example.com/informerstack/store"

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
	handover
	listType DeltaType // what Replace queues: Replaced or Sync

	// handover.mu guards the fields below.
	items     map[string]Deltas
	queue     []string
	mostItems int // since items was made
}

// longQueue is the number of keys for which a queue that becomes empty keeps its map. Tests lower
// it.
var longQueue = 1024

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
func (f *DeltaFIFO) Add(obj any) error { return f.put(Added, obj) }

// Update queues that obj was changed. It fails as Add does.
func (f *DeltaFIFO) Update(obj any) error { return f.put(Updated, obj) }

func (f *DeltaFIFO) put(t DeltaType, obj any) error {
	key, err := f.keyOf(obj)
	if err != nil {
		err = store.KeyError{Obj: obj, Err: err}
	} else if f.transformer != nil {
		obj, err = f.transform(key, obj)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.begin(0)
		return err
	}
	f.appendLocked(key, Delta{t, obj})
	f.handedLocked(0)
	return nil
}

// Delete queues that obj, an object or a tombstone, was deleted. If the key is neither queued nor
// known, the delete was reported before, by a relist, and is dropped. It fails as Add does.
func (f *DeltaFIFO) Delete(obj any) error {
	key, err := f.keyOf(obj)
	if err != nil {
		return store.KeyError{Obj: obj, Err: err}
	}
	if f.transformer != nil {
		obj, err = f.transform(key, obj)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.begin(0)
	if f.isQueuedLocked(key) || f.known.has(key) {
		if err != nil {
			return err
		}
		f.appendLocked(key, Delta{Deleted, obj})
	}
	f.handedLocked(0)
	return nil
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
	for len(f.queue) == 0 {
		if f.closed.Load() {
			return nil, ErrFIFOClosed
		}
		f.cond.Wait()
	}
	isInInitialList := f.initial
	key := f.queue[0]
	f.queue = f.queue[1:]
	deltas := f.items[key]
	delete(f.items, key)
	if len(f.queue) == 0 && f.mostItems > longQueue {
		f.items, f.queue, f.mostItems = map[string]Deltas{}, nil, 0 // neither shrinks by itself
	}
	p := popped{
		what: "DeltaFIFO Pop Process", key: key, n: 1, left: len(f.queue), deltas: len(deltas),
	}
	err := f.processLocked(p, func() error { return process(deltas, isInInitialList) })
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
// unchanged. A DeltaFIFO does not need the resourceVersion.
func (f *DeltaFIFO) Replace(list []any, _ string) error {
	all, err := f.prepareAll(list)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	queuedBefore := f.queue
	listed := make(map[string]struct{}, len(all))
	for _, p := range all {
		listed[p.key] = struct{}{}
		f.appendLocked(p.key, Delta{f.listType, p.obj})
	}
	for _, key := range queuedBefore {
		if _, isListed := listed[key]; !isListed {
			f.appendLocked(key, tombstone(key, f.items[key].Newest().Object))
		}
	}
	f.known.deleteAbsent(f.isQueuedLocked, f.appendLocked) // listed objects are queued by now
	f.handedLocked(f.queued)
	return nil
}

// Resync queues a Sync for each known object without queued deltas: a queued change is newer than
// the known object. Without KnownObjects it does nothing. Known objects without a key are skipped
// and reported together as an error.
func (f *DeltaFIFO) Resync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.known.resync(f.keyOf, f.isQueuedLocked, f.appendLocked)
}

func (f *DeltaFIFO) isQueuedLocked(key string) bool {
	_, queued := f.items[key]
	return queued
}

// appendLocked adds d to the deltas of key, and queues the key if it is not queued. It merges two
// consecutive deletes into one: the first, which is nearer to the event, unless it is a tombstone,
// which has less information.
func (f *DeltaFIFO) appendLocked(key string, d Delta) {
	deltas := f.items[key]
	last := len(deltas) - 1
	if last >= 0 && d.Type == Deleted && deltas[last].Type == Deleted {
		if _, ok := deltas[last].Object.(store.DeletedFinalStateUnknown); ok {
			deltas[last] = d
		}
		return
	}
	f.items[key] = append(deltas, d)
	if last >= 0 {
		return
	}
	f.queue = append(f.queue, key)
	f.queued++
	f.mostItems = max(f.mostItems, len(f.items))
	f.cond.Signal()
	if f.metrics.Depth != nil {
		f.metrics.Depth(len(f.queue))
	}
}
