// SPDX-License-Identifier: Apache-2.0

package deltafifo

import "errors"

// Replace queues what a LIST saw: that each listed object is there, and that whatever else is queued or known is gone.
//
//  1. Listed objects, in list order, as Replaced (or Sync, see DeltaFIFOOptions).
//  2. Keys that were queued and are not listed: Deleted, with a tombstone of the newest queued object.
//  3. Keys that are known, and neither listed nor queued: Deleted, with a tombstone of the known object, or of nil if it
//     cannot be read.
//
// If this is the queue's first change, then all of it is the first list, on which HasSynced waits: nothing listed and
// nothing known means synced at once. The error is a store.KeyError or the transformer's; the queue is then as it was.
// The resourceVersion is not used.
func (f *DeltaFIFO) Replace(list []any, resourceVersion string) error {
	received, err := f.intake.takeAll(list)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reserveLocked(len(received))

	queuedBefore := f.queue.len()
	listed := make([]bool, queuedBefore) // of the entries queued before
	for _, r := range received {
		if number, queued := f.index[r.key]; queued {
			if i := int(number - f.popped); i < queuedBefore {
				listed[i] = true
			}
		}
		f.putLocked(r.key, Delta{f.listType, r.obj})
	}
	for i, isListed := range listed {
		if e := f.queue.at(i); !isListed {
			f.putLocked(e.key, tombstone(e.key, e.deltas.Newest().Object))
		}
	}
	if f.knownObjects != nil {
		for _, key := range f.knownObjects.ListKeys() {
			if _, queued := f.index[key]; !queued { // and so not listed: all that is listed is queued by now
				obj, _ := f.known(f.knownObjects, key)
				f.putLocked(key, tombstone(key, obj))
			}
		}
	}
	f.first.begin(f.queue.len())
	return nil
}

// reserveLocked makes room for a list, so that a large one does not grow the queue step by step.
func (f *DeltaFIFO) reserveLocked(n int) {
	f.queue.grow(n)
	if len(f.index) == 0 && n > keepRingLen {
		f.index = make(map[string]uint64, n)
	}
}

// Resync queues a Sync for each known object that has nothing queued: a queued change is newer than what is known.
// Without KnownObjects it does nothing. Known objects of which no key can be computed are passed over, and reported
// together as an error.
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
		key, err := f.intake.mustKey(obj)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if _, queued := f.index[key]; !queued {
			f.putLocked(key, Delta{Sync, obj})
		}
	}
	return errors.Join(errs...)
}
