// SPDX-License-Identifier: Apache-2.0

package deltafifo

const (
	maxBatchLen = 1000
	// While backlogLen deltas wait, UnlockWhileProcessing is suspended: producers must not outrun
	// the consumer.
	backlogLen = 2 * maxBatchLen
)

// Pop blocks until a delta is queued, removes the oldest one, and runs process on it, as Deltas of
// length 1. It returns those Deltas and process's error. An error does not put the delta back.
// HasSynced changes after process has returned.
//
// process runs with the queue locked, except with UnlockWhileProcessing. So it must not call a
// method that takes the lock: Pop, PopBatch, Close, IsClosed, or any method that changes the queue.
func (f *RealFIFO) Pop(process PopProcessFunc) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.waitLocked(); err != nil {
		return nil, err
	}
	isInInitialList := !f.counter.isSynced()
	oldest := f.items.items()[0]
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
	if err := f.waitLocked(); err != nil {
		return err
	}
	isInInitialList := !f.counter.isSynced()
	items := f.items.items()[:f.batchLenLocked()]
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
	limit := min(f.counter.len(), maxBatchLen)
	if left := f.counter.firstLeft(); left > 0 {
		limit = min(limit, left)
	}
	if limit == 1 {
		return 1
	}
	defer clear(f.seen)
	for i, it := range f.items.items()[:limit] {
		switch it.delta.Type {
		case ReplacedAll, SyncAll, Bookmark: // these do not concern one object
			return max(i, 1)
		}
		if it.keyLost {
			return i + 1
		}
		if _, dup := f.seen[it.key]; dup {
			return i
		}
		f.seen[it.key] = struct{}{}
	}
	return limit
}

// popLocked removes the n oldest items and runs process for them, without the lock if the options
// allow it and fewer than backlogLen deltas wait.
func (f *RealFIFO) popLocked(what, key string, n int, process func() error) error {
	f.items.pop(n)
	unlock := f.unlock && len(f.items.items()) < backlogLen
	return f.processLocked(what, key, n, unlock, process)
}
