// SPDX-License-Identifier: Apache-2.0

package deltafifo

// RealFIFO is a queue of deltas in the order of arrival, over all keys. It merges no deltas and
// drops none: the consumer sees every change, including the delete of an object that it never saw.
// The consumer pops deltas one by one, or in batches of different keys.
//
// Adding and popping take constant time. Replace is linear in the size of the list. Without
// AtomicEvents, Replace and Resync are also linear in the number of queued and known objects. Every
// method may be called concurrently. Only Pop and PopBatch wait for items, but the methods that
// change the queue wait while a process function runs under the lock.
//
//	O1  items are in the order of the calls that queued them
//	O2  with AtomicEvents no queued delta is Replaced or Sync; without it none is ReplacedAll,
//	    SyncAll or Bookmark
//	O3  an item has a key unless it is ReplacedAll, SyncAll or Bookmark
//
// Source: tools/cache/the_real_fifo.go RealFIFO
type RealFIFO struct {
	base      // base.known is nil <=> atomic
	atomic    bool
	unlock    bool // run process functions without the lock
	bookmarks bool

	// base.mu guards the fields below.
	items fifo[item]
	seen  map[string]struct{} // used by batchLenLocked alone; empty otherwise
}

type item struct {
	delta   Delta
	key     string
	keyLost bool // the transformed object has no key; key is that of the received object
}

var (
	_ QueueWithBatch = (*RealFIFO)(nil)
	_ DoneChecker    = (*RealFIFO)(nil)
)

// NewRealFIFO returns an empty queue. It panics if the options contradict each other.
func NewRealFIFO(opts Options) *RealFIFO {
	switch {
	case opts.AtomicEvents && opts.KnownObjects != nil:
		panic("deltafifo: Options.KnownObjects must be nil with AtomicEvents")
	case !opts.AtomicEvents && opts.KnownObjects == nil:
		panic("deltafifo: Options.KnownObjects is required without AtomicEvents")
	case !opts.AtomicEvents && opts.UnlockWhileProcessing:
		panic("deltafifo: Options.UnlockWhileProcessing needs AtomicEvents")
	case !opts.AtomicEvents && opts.EmitDeltaTypeBookmark:
		panic("deltafifo: Options.EmitDeltaTypeBookmark needs AtomicEvents")
	}
	f := &RealFIFO{
		atomic:    opts.AtomicEvents,
		unlock:    opts.UnlockWhileProcessing,
		bookmarks: opts.EmitDeltaTypeBookmark,
		seen:      map[string]struct{}{},
	}
	f.init(opts, "RealFIFO")
	return f
}

// Add queues that obj was created. It fails with a store.KeyError or with the transformer's
// error; then nothing is queued.
func (f *RealFIFO) Add(obj any) error { return f.receive(Added, obj) }

// Update queues that obj was changed. It fails as Add does.
func (f *RealFIFO) Update(obj any) error { return f.receive(Updated, obj) }

// Delete queues that obj, an object or a tombstone, was deleted, even if the object was never
// queued. It fails as Add does.
func (f *RealFIFO) Delete(obj any) error { return f.receive(Deleted, obj) }

func (f *RealFIFO) receive(t DeltaType, obj any) error {
	received, err := f.preparer.prepare(obj)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counter.begin(0)
	if err != nil {
		return err
	}
	f.putLocked(f.itemOf(t, received))
	f.counter.changed(received.obj)
	f.reportDepthLocked()
	return nil
}

// itemOf returns the item of a received object. Its key is that of the transformed object, as the
// consumer computes it.
func (f *RealFIFO) itemOf(t DeltaType, received prepared) item {
	it := item{delta: Delta{t, received.obj}, key: received.key}
	if f.preparer.transformer != nil {
		if key, err := f.preparer.keyOf(received.obj); err == nil {
			it.key = key
		} else {
			it.keyLost = true
		}
	}
	return it
}

// Bookmark queues that the server has reported resourceVersion in a bookmark. Without
// EmitDeltaTypeBookmark it is a no-op. It never fails.
func (f *RealFIFO) Bookmark(resourceVersion string) error {
	if !f.bookmarks {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.putLocked(item{delta: Delta{Bookmark, BookmarkInfo{ResourceVersion: resourceVersion}}})
	return nil
}

// Replace queues what a LIST returned. With AtomicEvents this is one ReplacedAll delta. Then list
// belongs to the queue, and the caller must not change it. Without AtomicEvents it is one delta for
// each object:
//
//  1. Keys that are queued and not listed, and whose newest delta is not a delete: Deleted, with a
//     tombstone of that delta's object.
//  2. Keys that are known, and neither listed nor queued: Deleted, with a tombstone of the known
//     object, or of nil if it cannot be read.
//  3. Listed objects, in list order, as Replaced.
//
// If this is the queue's first change, HasSynced waits for all of it. The error is a store.KeyError
// or the transformer's; then the queue is unchanged.
func (f *RealFIFO) Replace(list []any, resourceVersion string) error {
	if !f.atomic {
		return f.replaceEach(list, resourceVersion)
	}
	list, err := f.preparer.prepareList(list)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counter.replace()
	info := ReplacedAllInfo{ResourceVersion: resourceVersion, Objects: list}
	f.putLocked(item{delta: Delta{ReplacedAll, info}})
	f.reportDepthLocked()
	f.counter.listed(resourceVersion)
	return nil
}

func (f *RealFIFO) replaceEach(list []any, resourceVersion string) error {
	received, err := f.preparer.prepareAll(list)
	if err != nil {
		return err
	}
	listed := make(map[string]bool, len(received))
	for _, r := range received {
		listed[r.key] = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counter.replace()
	newest, queuedKeys := f.newestQueuedLocked()
	for _, key := range queuedKeys {
		if d := newest[key]; !listed[key] && d.Type != Deleted {
			f.putKeyLocked(key, tombstone(key, d.Object))
		}
	}
	f.deleteKnownLocked(func(key string) bool {
		_, queued := newest[key]
		return queued || listed[key]
	}, f.putKeyLocked)
	for _, r := range received {
		f.putLocked(f.itemOf(Replaced, r))
	}
	f.reportDepthLocked()
	f.counter.listed(resourceVersion)
	return nil
}

// newestQueuedLocked returns the newest delta of each queued key, and the keys in order of their
// first deltas.
func (f *RealFIFO) newestQueuedLocked() (newest map[string]Delta, keys []string) {
	newest = make(map[string]Delta, f.counter.len())
	for _, it := range f.items.items() {
		if _, seen := newest[it.key]; !seen {
			keys = append(keys, it.key)
		}
		newest[it.key] = it.delta
	}
	return newest, keys
}

// Resync queues a replay of the known objects. With AtomicEvents this is one SyncAll delta.
// Without, it is a Sync for each known object without queued deltas: a queued change is newer than
// the known object. Known objects without a key are skipped and reported together as an error.
func (f *RealFIFO) Resync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	defer f.reportDepthLocked()
	if f.atomic {
		f.putLocked(item{delta: Delta{SyncAll, SyncAllInfo{}}})
		return nil
	}
	newest, _ := f.newestQueuedLocked()
	return f.resyncLocked(func(key string) bool {
		_, queued := newest[key]
		return queued
	}, f.putKeyLocked)
}

func (f *RealFIFO) putLocked(it item) {
	f.items.push(it)
	f.counter.queued++
	f.cond.Signal()
}

func (f *RealFIFO) putKeyLocked(key string, d Delta) { f.putLocked(item{delta: d, key: key}) }
