// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"cmp"
	"time"
)

const (
	maxBatchLen = 1000
	// While backlogLen deltas wait, UnlockWhileProcessing is suspended: producers must not outrun
	// the consumer.
	backlogLen = 2 * maxBatchLen
)

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
	items []item
}

type item struct {
	delta   Delta
	key     string
	keyLost bool     // the transformed object has no key; key is that of the received object
	mark    *version // see progress
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
	received, err := f.prepare(obj)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.progress.begin(0)
	if err != nil {
		return err
	}
	f.putLocked(f.itemOf(t, received))
	f.markLocked(f.progress.changed(received.obj))
	f.reportDepthLocked(len(f.items))
	return nil
}

// itemOf returns the item of a received object. Its key is that of the transformed object, as the
// consumer computes it.
func (f *RealFIFO) itemOf(t DeltaType, received prepared) item {
	it := item{delta: Delta{t, received.obj}, key: received.key}
	if f.transformer != nil {
		if key, err := f.keyOf(received.obj); err == nil {
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
	list, err := f.prepareList(list)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.progress.repaired() {
		for i := range f.items {
			f.items[i].mark = nil
		}
	}
	info := ReplacedAllInfo{ResourceVersion: resourceVersion, Objects: list}
	f.putLocked(item{delta: Delta{ReplacedAll, info}})
	f.reportDepthLocked(len(f.items))
	f.progress.begin(len(f.items))
	f.markLocked(f.progress.received(resourceVersion, time.Time{}))
	return nil
}

func (f *RealFIFO) replaceEach(list []any, resourceVersion string) error {
	received, err := f.prepareAll(list)
	if err != nil {
		return err
	}
	listed := make(map[string]bool, len(received))
	for _, r := range received {
		listed[r.key] = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.progress.repaired() {
		for i := range f.items {
			f.items[i].mark = nil
		}
	}
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
	f.reportDepthLocked(len(f.items))
	f.progress.begin(len(f.items))
	f.markLocked(f.progress.received(resourceVersion, time.Time{}))
	return nil
}

// newestQueuedLocked returns the newest delta of each queued key, and the keys in order of their
// first deltas.
func (f *RealFIFO) newestQueuedLocked() (newest map[string]Delta, keys []string) {
	newest = make(map[string]Delta, len(f.items))
	for _, it := range f.items {
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
	defer func() { f.reportDepthLocked(len(f.items)) }()
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
	f.items = append(f.items, it)
	f.cond.Signal()
}

func (f *RealFIFO) putKeyLocked(key string, d Delta) { f.putLocked(item{delta: d, key: key}) }

func (f *RealFIFO) isEmptyLocked() bool { return len(f.items) == 0 }

// markLocked has v, unless it is nil, reported once all that is queued has been processed.
func (f *RealFIFO) markLocked(v *version) {
	switch newest := len(f.items) - 1; {
	case v == nil:
	case newest >= 0:
		f.items[newest].mark = v
	default:
		f.progress.await(v)
	}
}

// Received notes that every change up to resourceVersion, which was current at asOf, has been
// queued. The queue calls Reached with both when all of them are processed, at once if nothing is
// queued. The resourceVersion of a server without resourceVersions is "".
//
// The queue may also call Reached with the resourceVersion of a queued change and a zero asOf. It
// does not call Reached for a change whose processing failed, or for later changes, until a Replace
// has come after the failure. Reached may run under the queue's lock and must not call the queue.
func (f *RealFIFO) Received(resourceVersion string, asOf time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.markLocked(f.progress.received(resourceVersion, asOf))
}

// Pop blocks until a delta is queued, removes the oldest one, and runs process on it, as Deltas of
// length 1. It returns those Deltas and process's error. An error does not put the delta back.
// HasSynced changes after process has returned.
//
// process runs with the queue locked, except with UnlockWhileProcessing. So it must not call a
// method that takes the lock: Pop, PopBatch, Close, or any method that changes the queue.
func (f *RealFIFO) Pop(process PopProcessFunc) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.waitLocked(f.isEmptyLocked); err != nil {
		return nil, err
	}
	isInInitialList := !f.progress.isSynced()
	oldest := f.items[0]
	var deltas any = Deltas{oldest.delta}
	err := f.popLocked("RealFIFO Pop Process", oldest.key, 1, func() error {
		return process(deltas, isInInitialList)
	})
	return deltas, err
}

// PopBatch blocks until a delta is queued, removes the oldest deltas, at most 1000, and runs
// processBatch on them. A single delta goes to processSingle, as Deltas of length 1. PopBatch
// returns the function's error. An error does not put the deltas back. The rules of Pop apply to
// both functions.
//
// A batch has at most one delta for a key. A ReplacedAll, SyncAll or Bookmark is never part of a
// batch. A batch ends at the end of the first list, and after an object whose key cannot be
// computed after its transformation.
func (f *RealFIFO) PopBatch(processBatch ProcessBatchFunc, processSingle PopProcessFunc) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.waitLocked(f.isEmptyLocked); err != nil {
		return err
	}
	isInInitialList := !f.progress.isSynced()
	items := f.items[:f.batchLenLocked()]
	key := items[0].key
	batch := make([]Delta, len(items))
	for i := range items {
		batch[i] = items[i].delta
	}
	return f.popLocked("RealFIFO PopBatch Process", key, len(batch), func() error {
		if len(batch) == 1 {
			return processSingle(Deltas(batch), isInInitialList)
		}
		return processBatch(batch, isInInitialList)
	})
}

// batchLenLocked returns the number of the oldest items that form a batch. The queue is not empty.
func (f *RealFIFO) batchLenLocked() int {
	limit := min(len(f.items), maxBatchLen)
	if first := f.progress.firstQueued; first > 0 {
		limit = min(limit, first)
	}
	seen := make(map[string]struct{}, limit)
	for i, it := range f.items[:limit] {
		switch it.delta.Type {
		case ReplacedAll, SyncAll, Bookmark: // these do not concern one object
			return max(i, 1)
		}
		if it.keyLost {
			return i + 1
		}
		if _, dup := seen[it.key]; dup {
			return i
		}
		seen[it.key] = struct{}{}
	}
	return limit
}

// popLocked removes the n oldest items and runs process for them, without the lock if the options
// allow it and fewer than backlogLen deltas wait.
func (f *RealFIFO) popLocked(what, key string, n int, process func() error) error {
	var mark *version
	for _, it := range f.items[:n] {
		mark = cmp.Or(it.mark, mark)
	}
	clear(f.items[:n]) // so that popped objects can be collected
	f.items = f.items[n:]
	if len(f.items) == 0 {
		f.items = nil
	}
	return f.processLocked(processing{
		what: what, key: key, n: n, left: len(f.items), mark: mark,
		unlock: f.unlock && len(f.items) < backlogLen,
	}, process)
}
