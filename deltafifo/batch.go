// SPDX-License-Identifier: Apache-2.0

package deltafifo

const (
	maxBatchLen = 1000
	// With this many deltas waiting, UnlockWhileProcessing is suspended, so that producers cannot outrun the consumer.
	backlogLen = 2 * maxBatchLen
)

// Pop blocks until something is queued, takes out the oldest delta, and runs process on it as Deltas of one. It returns
// those Deltas and process's error. An error does not bring the delta back. HasSynced changes after process has returned.
//
// process runs with the queue locked unless UnlockWhileProcessing says otherwise, so it must not call what takes the
// lock: what changes the queue, Pop, PopBatch, Close and IsClosed.
func (f *RealFIFO) Pop(process PopProcessFunc) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.waitLocked(); err != nil {
		return nil, err
	}
	isInInitialList := !f.HasSynced()
	oldest := f.items.items()[0]
	var deltas any = Deltas{oldest.delta}
	err := f.deliverLocked("RealFIFO Pop Process", oldest.key, 1, func() error {
		return process(deltas, isInInitialList)
	})
	return deltas, err
}

// PopBatch blocks until something is queued, takes out the oldest deltas, at most 1000, and runs processBatch on them. A
// single one goes to processSingle, as Deltas of one. It returns what that function returned. An error does not bring the
// deltas back. The rules of Pop hold for both functions.
//
// A batch ends before a second delta of one key; before, and after, a ReplacedAll, SyncAll or Bookmark; at the end of the
// first list; and after an object of which no key can be computed once it is transformed.
func (f *RealFIFO) PopBatch(processBatch ProcessBatchFunc, processSingle PopProcessFunc) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.waitLocked(); err != nil {
		return err
	}
	isInInitialList := !f.HasSynced()
	items := f.items.items()[:f.batchLenLocked()]
	key := items[0].key
	batch := make([]Delta, len(items))
	for i := range items {
		batch[i] = items[i].delta
	}
	return f.deliverLocked("RealFIFO PopBatch Process", key, len(batch), func() error {
		if len(batch) == 1 {
			return processSingle(Deltas(batch), isInInitialList)
		}
		return processBatch(batch, isInInitialList)
	})
}

// waitLocked blocks until something is queued.
func (f *RealFIFO) waitLocked() error {
	for f.items.len() == 0 {
		if f.closed {
			return ErrFIFOClosed
		}
		f.cond.Wait()
	}
	return nil
}

// batchLenLocked returns how many of the oldest items make a batch. The queue is not empty.
func (f *RealFIFO) batchLenLocked() int {
	limit := min(f.items.len(), maxBatchLen)
	if left := f.counter.firstLeft(); left > 0 {
		limit = min(limit, left)
	}
	if limit == 1 {
		return 1
	}
	defer clear(f.seen)
	for i, it := range f.items.items()[:limit] {
		if !it.batchable() {
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

// batchable reports whether the item is about one object.
func (it *item) batchable() bool {
	switch it.delta.Type {
	case ReplacedAll, SyncAll, Bookmark:
		return false
	}
	return true
}

// deliverLocked removes the n oldest items and runs process for them, without the lock if it may.
func (f *RealFIFO) deliverLocked(what, key string, n int, process func() error) error {
	f.items.pop(n)
	depth := f.items.len()
	f.setQueued(depth)
	return f.processLocked(what, key, depth, n, f.unlock && depth < backlogLen, process)
}
