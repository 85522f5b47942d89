// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/workqueue"
)

// Prioritized is a queue with priorities, such as controller-runtime's. O are the options of an
// Add.
type Prioritized[T comparable, O any] interface {
	workqueue.TypedRateLimitingInterface[T]
	AddWithOpts(o O, items ...T)
	GetWithPriority() (item T, priority int, shutdown bool)
}

// Inside shows what the interface of a Prioritized does not.
type Inside[T comparable, O any] struct {
	// Options returns the delay of an Add, and whether it asks the limiter.
	Options func(o O) (after time.Duration, rateLimited bool)
	// Look calls ready, and then waiting, for the items of the queue in its order, each until it
	// returns false. Both are called under the queue's lock, and do not block. The ready items
	// include those that workers have (processing) and that were added again, which it returns.
	// The totals are of all items.
	Look func(
		processing []T, ready func(item T, priority int) bool,
		waiting func(item T, priority int, due time.Time) bool,
	) (again []T, readyTotal, waitingTotal int)
}

// PriorityQueue is a queue with priorities that notes which keys it gets, why, and how their
// reconciles end.
type PriorityQueue[T comparable, O any] struct {
	DelayingQueue[T]
	inner *prioritized[T, O]
}

// NewPriorityQueue returns a queue that notes in j, under a name, what it does with inner.
func NewPriorityQueue[T comparable, O any](
	j *Journal, name string, inner Prioritized[T, O], inside Inside[T, O],
) *PriorityQueue[T, O] {
	p := &prioritized[T, O]{Prioritized: inner, inside: inside, processing: map[T]uint64{}}
	q := &PriorityQueue[T, O]{DelayingQueue[T]{p, newNotes[T](j, name)}, p}
	dropWith(q, j, q.name)
	return q
}

// AddWithOpts notes the reason, and adds the items.
func (q *PriorityQueue[T, O]) AddWithOpts(o O, items ...T) {
	after, rateLimited := q.inner.inside.Options(o)
	cause := Cause{}
	switch {
	case rateLimited:
		cause.Kind = Retry
	case after > 0:
		cause.Kind, cause.Delay = Delay, after
	}
	for _, item := range items {
		q.added(item, cause, cause.Kind != "")
	}
	q.inner.AddWithOpts(o, items...)
}

// AddRateLimited notes a failure.
func (q *PriorityQueue[T, O]) AddRateLimited(item T) {
	q.added(item, Cause{Kind: Retry}, true)
	q.inner.AddRateLimited(item)
}

// GetWithPriority notes the worker that gets the item.
func (q *PriorityQueue[T, O]) GetWithPriority() (item T, priority int, shutdown bool) {
	item, priority, shutdown = q.inner.GetWithPriority()
	q.took(item, shutdown)
	return item, priority, shutdown
}

// Forget notes a success.
func (q *PriorityQueue[T, O]) Forget(item T) {
	q.forgotten(item)
	q.inner.Forget(item)
}

// NumRequeues implements workqueue.TypedRateLimitingInterface.
func (q *PriorityQueue[T, O]) NumRequeues(item T) int { return q.inner.NumRequeues(item) }

// prioritized counts what workers take from a Prioritized, and shows its content.
type prioritized[T comparable, O any] struct {
	Prioritized[T, O]
	inside Inside[T, O]

	mu         sync.Mutex
	taken      uint64
	processing map[T]uint64 // the value of taken when a worker took the item
}

func (p *prioritized[T, O]) GetWithPriority() (item T, priority int, shutdown bool) {
	item, priority, shutdown = p.Prioritized.GetWithPriority()
	if !shutdown {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.taken++
		p.processing[item] = p.taken
	}
	return item, priority, shutdown
}

func (p *prioritized[T, O]) Get() (item T, shutdown bool) {
	item, _, shutdown = p.GetWithPriority()
	return item, shutdown
}

// GetWithContext checks ctx only before the wait.
func (p *prioritized[T, O]) GetWithContext(ctx context.Context) (item T, shutdown bool) {
	if ctx.Err() != nil {
		return item, true
	}
	return p.Get()
}

func (p *prioritized[T, O]) Done(item T) {
	p.mu.Lock()
	delete(p.processing, item)
	p.mu.Unlock()
	p.Prioritized.Done(item)
}

// working returns the items that workers have, longest first, and the number of those taken.
func (p *prioritized[T, O]) working() (processing []T, taken uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	processing = slices.SortedFunc(maps.Keys(p.processing), func(a, b T) int {
		return int(p.processing[a]) - int(p.processing[b])
	})
	return processing, p.taken
}

func (p *prioritized[T, O]) Snapshot() workqueue.Snapshot[T] {
	return p.SnapshotOf(0, math.MaxInt).Snapshot
}

// SnapshotOf implements workqueue.Partial.
func (p *prioritized[T, O]) SnapshotOf(skip, limit int) workqueue.Part[T] {
	part := p.part(skip, limit)
	part.Processing = part.Processing[min(skip, len(part.Processing)):]
	part.Processing = part.Processing[:min(limit, len(part.Processing))]
	part.Again = slices.DeleteFunc(part.Again, func(item T) bool {
		return !slices.Contains(part.Processing, item)
	})
	p.count(&part)
	return part
}

// Find implements workqueue.Partial. It copies all items of the queue under its lock.
func (p *prioritized[T, O]) Find(match func(item T) bool) workqueue.Part[T] {
	part := workqueue.Find(copied[T](p.part(0, math.MaxInt).Snapshot), match)
	maps.DeleteFunc(part.Priorities, func(item T, _ int) bool { return !match(item) })
	p.count(&part)
	return part
}

// copied is the content of a queue.
type copied[T comparable] workqueue.Snapshot[T]

func (c copied[T]) Snapshot() workqueue.Snapshot[T] { return workqueue.Snapshot[T](c) }

// part returns at most limit ready and waiting items, after the first skip, and all others.
func (p *prioritized[T, O]) part(skip, limit int) (part workqueue.Part[T]) {
	part.Processing, part.Taken = p.working()
	has := map[T]bool{}
	for _, item := range part.Processing {
		has[item] = true
	}
	noted := func(item T, priority int) {
		if priority == 0 {
			return
		}
		if part.Priorities == nil {
			part.Priorities = map[T]int{}
		}
		part.Priorities[item] = priority
	}
	var readySeen, waitingSeen int
	again, ready, waiting := p.inside.Look(part.Processing, func(item T, priority int) bool {
		if has[item] {
			return true
		}
		if len(part.Ready) == limit {
			return false
		}
		if readySeen++; readySeen <= skip {
			return true
		}
		part.Ready = append(part.Ready, item)
		part.Numbers = append(part.Numbers, readySeen)
		noted(item, priority)
		return true
	}, func(item T, priority int, due time.Time) bool {
		if len(part.Waiting) == limit {
			return false
		}
		if waitingSeen++; waitingSeen <= skip {
			return true
		}
		part.Waiting = append(part.Waiting, workqueue.Waiting[T]{Item: item, Due: due})
		noted(item, priority)
		return true
	})
	part.Again = again
	part.Total = workqueue.Totals{Ready: ready - len(again), Processing: len(part.Processing),
		Again: len(again), Waiting: waiting}
	if n := len(part.Waiting); n > 0 && skip+n == waiting {
		part.LastDue = part.Waiting[n-1].Due
	}
	return part
}

// count asks the limiter about the waiting items of a part.
func (p *prioritized[T, O]) count(part *workqueue.Part[T]) {
	for i, w := range part.Waiting {
		part.Waiting[i].Failures = p.NumRequeues(w.Item)
	}
}

// Returned notes the error that reconcile has returned in the goroutine of a worker: it is about
// the key that the worker has taken last, whatever else its goroutine has reported. nil is a no-op.
func (j *Journal) Returned(err error) {
	if err == nil || !j.recording() {
		return
	}
	own, text := goroutine(), printable.Short(fmt.Sprint(err))
	j.mu.Lock()
	defer j.mu.Unlock()
	if h := j.newestLocked(own); h != nil && h.value.current != nil {
		r := h.value.current
		r.Error, r.Returned, r.exact = text, true, true
	}
}
