// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"
)

// drainable is a Typed or a Fair.
type drainable[T comparable] interface {
	// drain is ShutDownWithDrain until ctx ends.
	drain(ctx context.Context, processingOnly bool)
	// take refuses new items, and removes and returns the queued ones, and those that Done would
	// queue.
	take() taken[T]
}

// taken are items that were removed from a queue.
type taken[T comparable] struct {
	items      []T
	priorities []int // nil, or one for each item
}

// Finish shuts the queue down once its work is done: it adds the waiting items now, refuses new
// ones, and waits until workers have finished all. They must call Get until it returns shutdown =
// true. The wait ends early when ctx ends, or when ShutDown is called, which drops what waits.
//
// Retries would never end. So from now on AddAfter keeps an item as one that waits, and no timer
// adds it. (Add, and AddAfter without a delay, are ignored.) ShutDown drops it.
//
// The error is nil exactly if no item is left. The items that are left stay in the queue: workers
// still get the queued ones, unless HandBack takes them. Config.Queue must be nil, a Typed or a
// Fair. With another queue Finish does nothing, and returns an error.
func (q *TypedDelayingQueue[T]) Finish(ctx context.Context) (left Snapshot[T], err error) {
	const verb = "finish"
	below, err := q.drainable(verb)
	if err != nil {
		return left, err
	}
	q.addWaiting()
	defer q.endDrain()
	q.stopReports()
	q.timers.Wait()
	if q.isKeeping() { // otherwise ShutDown was called
		below.drain(ctx, false)
	}
	q.released()

	left = q.Snapshot()
	err = drainError(ctx, verb, len(left.Ready), len(left.Processing), len(left.Waiting))
	if err == nil {
		q.drop(0)
	}
	return left, err
}

// addWaiting begins a Finish. Items that were kept for an earlier one stay.
func (q *TypedDelayingQueue[T]) addWaiting() {
	q.mu.Lock()
	q.draining++
	q.keeps = true
	if q.stopped {
		q.mu.Unlock()
		return
	}
	waiting := q.stopLocked()
	q.timers.Add(1) // another drain refuses items after this one has added them
	q.mu.Unlock()

	defer q.timers.Done()
	slices.SortFunc(waiting, (*waitingItem[T]).compare)
	for _, w := range waiting {
		q.addNow(w.item, w.priority)
	}
}

// HandBack shuts the queue down and takes all items out of it: it refuses new ones, removes those
// that are queued or wait, and waits until workers have finished those that they have. No worker
// gets another one. The wait ends early when ctx ends, or when ShutDown is called.
//
// It returns the items that no worker will work on: as Ready those that were queued, and then those
// that were added again while workers had them, with their Priorities; as Waiting those that
// waited, and those for which workers have called AddAfter meanwhile. (Add, and AddAfter without a
// delay, are ignored.) To drop the items, ignore the result.
//
// The error is nil exactly if workers have finished. Otherwise Processing has the items that they
// still have, and AddAfter keeps items for another HandBack, until ShutDown drops them.
// Config.Queue must be nil, a Typed or a Fair. With another queue HandBack does nothing, and
// returns an error.
func (q *TypedDelayingQueue[T]) HandBack(ctx context.Context) (left Snapshot[T], err error) {
	const verb = "hand back"
	below, err := q.drainable(verb)
	if err != nil {
		return left, err
	}
	q.mu.Lock()
	q.draining++
	q.keeps = true
	waiting := q.stopLocked()
	q.mu.Unlock()
	defer q.endDrain()
	q.stopReports()
	q.timers.Wait()
	queued := below.take()
	if q.isKeeping() { // otherwise ShutDown was called
		below.drain(ctx, true)
	}
	q.released()

	left = q.ContextInterface.Snapshot()
	left.Ready = queued.items
	for i, priority := range queued.priorities {
		left.notePriority(queued.items[i], priority)
	}
	err = drainError(ctx, verb, 0, len(left.Processing), 0)
	left.setWaiting(q.takeKept(waiting, err != nil))
	return left, err
}

// takeKept adds waiting to the kept items, and removes and returns all. more is whether AddAfter
// still keeps items.
func (q *TypedDelayingQueue[T]) takeKept(waiting waitHeap[T], more bool) (shown []Waiting[T]) {
	slices.SortFunc(waiting, (*waitingItem[T]).compare)
	q.mu.Lock()
	for _, w := range waiting {
		q.waitLocked(w.item, w.due, w.priority)
	}
	all := q.stopLocked()
	q.keeps = q.keeps && more
	q.mu.Unlock()

	slices.SortFunc(all, (*waitingItem[T]).compare)
	for _, w := range all {
		shown = append(shown, w.shown())
	}
	return shown
}

// isKeeping reports whether AddAfter keeps items for a drain.
func (q *TypedDelayingQueue[T]) isKeeping() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.keeps
}

// supersede ends item's wait for an Add, and returns its priority, or the lowest. The Add calls
// added when it has returned. Before that no drain refuses items: the item would be lost.
func (q *TypedDelayingQueue[T]) supersede(item T) (priority int, added func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	w, waits := q.waiting[item]
	if !waits || q.stopped {
		return math.MinInt, func() {}
	}
	q.removeLocked(w)
	q.timers.Add(1)
	return w.priority, q.timers.Done
}

func (q *TypedDelayingQueue[T]) drainable(verb string) (drainable[T], error) {
	below, ok := q.ContextInterface.(drainable[T])
	if !ok {
		return nil, fmt.Errorf("%s queue: Config.Queue is a %T, and not a Typed or a Fair",
			verb, q.ContextInterface)
	}
	return below, nil
}

// drainError returns nil if nothing is left.
func drainError(ctx context.Context, verb string, ready, processing, waiting int) error {
	if ready+processing+waiting == 0 {
		return nil
	}
	err := fmt.Errorf("%s queue: %d ready, %d processing and %d waiting items are left",
		verb, ready, processing, waiting)
	switch {
	case ready+processing == 0:
		return err
	case ctx.Err() == nil:
		return fmt.Errorf("%w: ShutDown was called", err)
	}
	return fmt.Errorf("%w: %w", err, context.Cause(ctx))
}

// Finish is that of the delaying queue, and returns what the limiter remembers, too.
func (q *TypedRateLimitingQueue[T]) Finish(ctx context.Context) (left Snapshot[T], err error) {
	left, err = q.TypedDelayingQueue.Finish(ctx)
	q.limits(&left)
	return left, err
}

// HandBack is that of the delaying queue, and returns what the limiter remembers, too.
func (q *TypedRateLimitingQueue[T]) HandBack(ctx context.Context) (left Snapshot[T], err error) {
	left, err = q.TypedDelayingQueue.HandBack(ctx)
	q.limits(&left)
	return left, err
}

// take implements drainable.
func (q *Typed[T]) take() (t taken[T]) {
	q.refuse(false)
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.queue.Len() > 0 {
		t.items = append(t.items, q.queue.Pop())
	}
	t.items = append(t.items, q.againLocked(q.longestLocked(0, len(q.processing)))...)
	q.dirty, q.mostDirty = map[T]time.Duration{}, 0
	q.metrics.handedBack(len(t.items))
	q.drained.Broadcast()
	return t
}

// take implements drainable. The items of the highest priority are first.
func (q *Fair[T]) take() (t taken[T]) {
	q.refuse(false)
	q.mu.Lock()
	defer q.mu.Unlock()
	add := func(e *entry[T]) bool {
		t.items, t.priorities = append(t.items, e.item), append(t.priorities, e.priority)
		return true
	}
	q.turns.all(add)
	for _, item := range t.items {
		e := q.known[item]
		q.turns.remove(e)
		q.forgetLocked(e)
	}
	q.processing.all(func(e *entry[T]) bool {
		if e.again {
			e.again = false
			add(e)
		}
		return true
	})
	q.again = 0
	q.metrics.handedBack(len(t.items))
	q.added.Broadcast()
	q.drained.Broadcast()
	return t
}
