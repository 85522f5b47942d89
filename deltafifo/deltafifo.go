// SPDX-License-Identifier: Apache-2.0

// Package deltafifo keeps changes until their one consumer takes them, so that it misses none and sees them in order.
//
//	reflector -> [deltafifo] -> informer
//
// A channel would block the producer or drop changes; a queue of keys would forget what happened in between, and above
// all that an object was deleted. A DeltaFIFO hands over, key by key, everything that happened to one object since the
// consumer last looked. A RealFIFO hands over every change of every object in the order of arrival.
//
// Read delta.go, queue.go, deltafifo.go, replace.go; then realfifo.go, batch.go; firstlist.go says when a queue has
// synced, base.go and intake.go are what both queues share. Then go test -v -run Transcript ./deltafifo.
// Goroutines: none; any number of producers, one consumer.
// Locking: one mutex a queue. The consumer's process function runs under it (a RealFIFO can be told not to), and so do the
// calls of KnownObjects; a transformer does not.
//
// Source: tools/cache/delta_fifo.go DeltaFIFO, tools/cache/the_real_fifo.go RealFIFO
package deltafifo

import (
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
	// KnownObjects is what the consumer already holds. Without it, a Replace cannot report that an object is gone whose
	// changes were all consumed, a Delete of such an object is dropped, and a Resync does nothing.
	KnownObjects KeyListerGetter
	// EmitDeltaTypeReplaced makes Replace queue listed objects as Replaced. Without it they come as Sync, which makes a
	// relist look like a resync.
	EmitDeltaTypeReplaced bool
	// Transformer changes each received object before it is queued. Tombstones, and objects that a Resync replays, are
	// not transformed. It runs without the queue's lock and must not add to this queue.
	Transformer store.TransformFunc
	// Metrics receives the queue's numbers.
	Metrics Metrics
}

// DeltaFIFO is a queue of keys, each with everything that happened to its object since it was last popped. A key's place
// in the queue is that of its oldest waiting delta.
//
// Adding costs two map operations at most and popping one, whatever the length of the queue; Replace and Resync are
// linear in what is listed, queued and known. Every method may be called concurrently; none but Pop blocks for long,
// but all that change the queue wait while a process function runs.
//
//	D1  index[key] == popped+i  <=>  queue[i] has that key; so no key is queued twice
//	D2  every queued entry has a delta
//	D3  no two deltas that follow each other in an entry are both Deleted
//	D4  first.queued <= number of entries, and F1, F2
//
// Source: tools/cache/delta_fifo.go DeltaFIFO
type DeltaFIFO struct {
	base
	knownObjects KeyListerGetter // may be nil
	listType     DeltaType       // what Replace queues: Replaced or Sync

	// base.mu guards what follows.
	queue  ring[entry]
	index  map[string]uint64 // key -> number of its entry, counted from the first that was ever queued
	popped uint64            // entries that have left the queue
}

type entry struct {
	key    string
	deltas Deltas
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
	f := &DeltaFIFO{knownObjects: opts.KnownObjects, listType: Sync, index: map[string]uint64{}}
	if opts.EmitDeltaTypeReplaced {
		f.listType = Replaced
	}
	f.init(opts.Name, opts.Logger, opts.KeyFunction, opts.Transformer, opts.Metrics)
	return f
}

// KeyOf computes the key of an object, of a tombstone, or of the newest object among Deltas.
func (f *DeltaFIFO) KeyOf(obj any) (string, error) { return f.intake.keyOf(obj) }

// Add queues that obj was created. It fails with a store.KeyError, or with the transformer's error; nothing is queued
// then.
func (f *DeltaFIFO) Add(obj any) error { return f.receive(Added, obj) }

// Update queues that obj was changed. It fails as Add does.
func (f *DeltaFIFO) Update(obj any) error { return f.receive(Updated, obj) }

func (f *DeltaFIFO) receive(t DeltaType, obj any) error {
	received, err := f.intake.take(obj)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.first.begin(0)
	if err != nil {
		return err
	}
	f.putLocked(received.key, Delta{t, received.obj})
	return nil
}

// Delete queues that obj, an object or a tombstone, is gone. If the consumer cannot know of it, neither from the queue
// nor from KnownObjects, then the delete was reported before, by a relist, and is dropped. It fails as Add does.
func (f *DeltaFIFO) Delete(obj any) error {
	key, err := f.intake.mustKey(obj)
	if err != nil {
		return err
	}
	obj, err = f.intake.transform(key, obj)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.first.begin(0)
	if !f.concernsConsumerLocked(key) {
		return nil
	}
	if err != nil {
		return err
	}
	f.putLocked(key, Delta{Deleted, obj})
	return nil
}

// concernsConsumerLocked reports whether the consumer knows key, or will when it has drained the queue.
func (f *DeltaFIFO) concernsConsumerLocked(key string) bool {
	if _, queued := f.index[key]; queued {
		return true
	}
	if f.knownObjects == nil {
		return false
	}
	_, exists, err := f.knownObjects.GetByKey(key)
	return exists || err != nil // in doubt, a delete too many is better than a ghost
}

// Pop blocks until a key is queued, takes out the oldest with all its deltas, and runs process on them as Deltas. It
// returns those Deltas, which are the caller's own, and process's error. An error does not bring them back.
//
// process runs with the queue locked: what it changes in the known objects, it changes in one step with the removal from
// the queue. So it must not call what takes the lock: what changes the queue, Pop, Close and IsClosed. If it panics, the
// queue is left lawful, less the key. HasSynced changes after process has returned.
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
	oldest := f.takeLocked()
	defer f.finishLocked(1, f.beginLocked(1))

	var deltas any = oldest.deltas
	err := f.run("DeltaFIFO Pop Process", oldest.key, f.queue.len(), 1, func() error {
		return process(deltas, isInInitialList)
	})
	return deltas, err
}

// putLocked adds a delta to key's entry, or queues a new entry.
func (f *DeltaFIFO) putLocked(key string, d Delta) {
	if number, queued := f.index[key]; queued {
		e := f.queue.at(int(number - f.popped))
		e.deltas = appendDelta(e.deltas, d)
		return
	}
	f.index[key] = f.popped + uint64(f.queue.len())
	f.queue.push(entry{key, Deltas{d}})
	f.setQueued(f.queue.len())
	f.cond.Signal()
}

// takeLocked takes out the oldest entry.
func (f *DeltaFIFO) takeLocked() entry {
	oldest := f.queue.pop()
	delete(f.index, oldest.key)
	f.popped++
	if f.queue.release() {
		f.index = map[string]uint64{} // maps do not shrink
	}
	f.setQueued(f.queue.len())
	return oldest
}

// appendDelta adds d to deltas, which are not empty. Of two deletes in a row one is kept: the first, because it is
// nearest to the event, unless it is a tombstone, which knows less.
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
