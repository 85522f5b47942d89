// SPDX-License-Identifier: Apache-2.0

package deltafifo

// maxBatchLen is the largest number of deltas in a batch. Tests lower it.
var maxBatchLen = 1000

// RealFIFO is a queue of deltas in the order of arrival, over all keys. It neither merges nor drops
// deltas: the consumer sees every change, including the delete of an object that it never saw. The
// consumer pops deltas one by one, or in batches of different keys.
//
// Adding and popping take constant time. Replace is linear in the size of the list. Without
// AtomicEvents, Replace and Resync are also linear in the number of queued and known objects. Every
// method may be called concurrently. Only Pop and PopBatch wait for items, but the methods that
// change the queue wait while a process function runs under the lock.
//
//	O1  items are in the order of the calls that queued them
//	O2  with AtomicEvents no queued delta is Replaced or Sync; without it no queued delta
//	    is ReplacedAll, SyncAll or Bookmark
//	O3  an item has a key unless it is ReplacedAll, SyncAll or Bookmark
//
// Source: tools/cache/the_real_fifo.go RealFIFO
type RealFIFO struct {
	handover  // nothing is known <=> atomic
	atomic    bool
	unlock    bool // run process functions without the lock
	bookmarks bool

	// handover.mu guards the fields below.
	items []item
}

type item struct {
	delta   Delta
	key     string
	keyLost bool // the transformed object has no key; key is that of the object as handed in
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
func (f *RealFIFO) Add(obj any) error { return f.put(Added, obj) }

// Update queues that obj was changed. It fails as Add does.
func (f *RealFIFO) Update(obj any) error { return f.put(Updated, obj) }

// Delete queues that obj, an object or a tombstone, was deleted, even if the object was never
// queued. It fails as Add does.
func (f *RealFIFO) Delete(obj any) error { return f.put(Deleted, obj) }

func (f *RealFIFO) put(t DeltaType, obj any) error {
	p, err := f.prepare(obj)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		f.begin(0)
		return err
	}
	f.appendLocked(f.itemOf(t, p))
	f.handedLocked(0)
	f.reportDepthLocked()
	return nil
}

// itemOf returns the item of an object. Its key is that of the transformed object, as the consumer
// computes it.
func (f *RealFIFO) itemOf(t DeltaType, p prepared) item {
	it := item{delta: Delta{t, p.obj}, key: p.key}
	if f.transformer != nil {
		if key, err := f.keyOf(p.obj); err == nil {
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
	if !f.bookmarks && f.progress == nil {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bookmarks {
		f.appendLocked(item{delta: Delta{Bookmark, BookmarkInfo{ResourceVersion: resourceVersion}}})
	}
	if f.progress != nil {
		f.progress.Queued(f.queued)
	}
	return nil
}

// Replace queues the result of a LIST. With AtomicEvents it queues one ReplacedAll delta. Then list
// belongs to the queue, and the caller must not change it. Without AtomicEvents it queues one delta
// for each object:
//
//  1. Keys that are queued and not listed, unless their newest delta is a delete: Deleted, with a
//     tombstone of that delta's object.
//  2. Keys that are known, and neither listed nor queued: Deleted, with a tombstone of the known
//     object, or of nil if it cannot be read.
//  3. Listed objects, in list order, as Replaced.
//
// If this is the queue's first change, HasSynced waits for all of it. The error is a store.KeyError
// or the transformer's; then the queue is unchanged.
func (f *RealFIFO) Replace(list []any, resourceVersion string) error {
	if !f.atomic {
		return f.replaceEach(list)
	}
	list, err := f.prepareList(list)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	info := ReplacedAllInfo{ResourceVersion: resourceVersion, Objects: list}
	f.appendLocked(item{delta: Delta{ReplacedAll, info}})
	f.handedLocked(f.queued)
	f.reportDepthLocked()
	return nil
}

func (f *RealFIFO) replaceEach(list []any) error {
	all, err := f.prepareAll(list)
	if err != nil {
		return err
	}
	listed := make(map[string]bool, len(all))
	for _, p := range all {
		listed[p.key] = true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	newest, queuedKeys := f.newestQueuedLocked()
	for _, key := range queuedKeys {
		if d := newest[key]; !listed[key] && d.Type != Deleted {
			f.appendKeyLocked(key, tombstone(key, d.Object))
		}
	}
	f.known.deleteAbsent(func(key string) bool {
		_, queued := newest[key]
		return queued || listed[key]
	}, f.appendKeyLocked)
	for _, p := range all {
		f.appendLocked(f.itemOf(Replaced, p))
	}
	f.handedLocked(f.queued)
	f.reportDepthLocked()
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
	defer f.reportDepthLocked()
	if f.atomic {
		f.appendLocked(item{delta: Delta{SyncAll, SyncAllInfo{}}})
		return nil
	}
	newest, _ := f.newestQueuedLocked()
	return f.known.resync(f.keyOf, func(key string) bool {
		_, queued := newest[key]
		return queued
	}, f.appendKeyLocked)
}

func (f *RealFIFO) appendLocked(it item) {
	f.items = append(f.items, it)
	f.queued++
	f.cond.Signal()
}

func (f *RealFIFO) appendKeyLocked(key string, d Delta) {
	f.appendLocked(item{delta: d, key: key})
}

func (f *RealFIFO) reportDepthLocked() {
	if f.metrics.Depth != nil {
		f.metrics.Depth(len(f.items))
	}
}

// waitLocked blocks until a delta is queued. It fails if the queue is closed and empty.
func (f *RealFIFO) waitLocked() error {
	for len(f.items) == 0 {
		if f.closed.Load() {
			return ErrFIFOClosed
		}
		f.cond.Wait()
	}
	return nil
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
	if err := f.waitLocked(); err != nil {
		return nil, err
	}
	isInInitialList := f.initial
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
// batch. A batch ends at the end of the first list, and after an object with a key that cannot be
// computed after its transformation.
func (f *RealFIFO) PopBatch(processBatch ProcessBatchFunc, processSingle PopProcessFunc) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.waitLocked(); err != nil {
		return err
	}
	isInInitialList := f.initial
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
	if left := f.firstList - (f.queued - len(f.items)); left > 0 {
		limit = min(limit, left)
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
// allow it and fewer than two full batches wait: producers must not outrun the consumer.
func (f *RealFIFO) popLocked(what, key string, n int, process func() error) error {
	clear(f.items[:n]) // so that popped objects can be collected
	f.items = f.items[n:]
	if len(f.items) == 0 {
		f.items = nil
	}
	left := len(f.items)
	unlock := f.unlock && left < 2*maxBatchLen
	p := popped{what: what, key: key, n: n, left: left, deltas: n, unlock: unlock}
	return f.processLocked(p, process)
}
