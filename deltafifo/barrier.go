// SPDX-License-Identifier: Apache-2.0

package deltafifo

// barriers tells when what was queued at some moment has been processed. It counts what Pop takes out: keys of a DeltaFIFO,
// deltas of a RealFIFO. The queue's mu guards it.
//
//	B1  popped - processed items are being processed
//	B2  a channel is in waiting  <=>  it is open  <=>  processed < its target
//	B3  the targets in waiting do not fall
type barriers struct {
	popped, processed uint64
	waiting           []barrier
}

type barrier struct {
	target uint64 // how many must have been processed
	done   chan struct{}
}

// raise returns a channel that closes when everything is processed: what was popped so far, and queued more.
func (b *barriers) raise(queued int) <-chan struct{} {
	next := barrier{target: b.popped + uint64(queued), done: make(chan struct{})}
	if b.processed == next.target {
		close(next.done)
		return next.done
	}
	b.waiting = append(b.waiting, next)
	return next.done
}

func (b *barriers) finish(n int) {
	b.processed += uint64(n)
	for len(b.waiting) > 0 && b.processed >= b.waiting[0].target {
		close(b.waiting[0].done)
		b.waiting = b.waiting[1:]
	}
	if len(b.waiting) == 0 {
		b.waiting = nil
	}
}

// beginLocked notes that n items are popped, and returns how many of them belong to the first list.
func (b *base) beginLocked(n int) (first int) {
	b.barriers.popped += uint64(n)
	return b.first.take(n)
}

// finishLocked notes that n items are processed, of which first belong to the first list.
func (b *base) finishLocked(n, first int) {
	b.first.finish(first)
	b.barriers.finish(n)
}

// Processed returns a channel that closes when all that is queued now, or being processed, has been processed. It closes at
// once if there is nothing, and never if the consumer stops before.
//
// It is how to wait until the consumer has seen what was just queued. In a DeltaFIFO a change joins those of its key that
// are queued already, and so comes sooner, never later.
func (f *DeltaFIFO) Processed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.barriers.raise(f.queue.len())
}

// Processed returns a channel that closes when all that is queued now, or being processed, has been processed. It closes at
// once if there is nothing, and never if the consumer stops before.
func (f *RealFIFO) Processed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.barriers.raise(f.items.len())
}
