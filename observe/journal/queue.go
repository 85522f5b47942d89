// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"time"
	"weak"

	"example.com/informerstack/internal/helpers/callsite"
	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/workqueue"
)

// notes are what a queue of items writes into a Journal.
type notes[T comparable] struct {
	journal *Journal
	name    *queueName
}

func newNotes[T comparable](j *Journal, name string) notes[T] {
	return notes[T]{j, &queueName{name: strings.Clone(printable.Short(name))}}
}

// dropWith makes j forget a queue's workers when the queue is collected. It keeps neither.
func dropWith[Q any](queue *Q, j *Journal, name *queueName) {
	runtime.AddCleanup(queue, func(j weak.Pointer[Journal]) {
		if j := j.Value(); j != nil {
			j.drop(name)
		}
	}, weak.Make(j))
}

func (n notes[T]) added(item T, c Cause, delayed bool) {
	now, recording := n.journal.now()
	if c.Time = now; recording {
		n.journal.added(n.name, work{n.name, item}, printable.KeyOf(item), c, delayed)
	}
}

func (n notes[T]) took(item T, shutdown bool) {
	if shutdown {
		return
	}
	worker := Worker{Since: time.Now(), goroutine: goroutine()}
	if !n.journal.recordingAt(worker.Since) {
		n.journal.took(work{n.name, item}, worker)
		return
	}
	function := printable.Short(callsite.Function("journal", "workqueue"))
	n.journal.begin(work{n.name, item}, printable.KeyOf(item), function, worker)
}

// forgotten does not ask for the time, as done: what is noted after the end of a recording is not
// shown.
func (n notes[T]) forgotten(item T) {
	if n.journal.until.Load() != 0 && !n.journal.forgotten(work{n.name, item}) &&
		n.journal.recording() {
		n.journal.forgottenAt(place{n.name, printable.KeyOf(item)})
	}
}

func (n notes[T]) done(item T) {
	switch {
	case n.journal.until.Load() == 0:
		n.journal.done(work{n.name, item})
	case n.journal.endTaken(work{n.name, item}):
	case n.journal.recording():
		n.journal.endOf(work{n.name, item}, printable.KeyOf(item))
	default:
		n.journal.done(work{n.name, item})
	}
}

// Workers returns the goroutine of each item that is being worked on.
func (n notes[T]) Workers() map[string]Worker { return n.journal.workersOf(n.name) }

// DelayingQueue is a queue that notes which keys it gets, why, and how their reconciles end.
type DelayingQueue[T comparable] struct {
	delaying[T]
	notes[T]
}

type delaying[T comparable] interface {
	workqueue.ContextInterface[T]
	AddAfter(item T, duration time.Duration)
}

// NewDelayingQueue returns a queue that notes in j, under a name, what it does with inner.
func NewDelayingQueue[T comparable](
	j *Journal, name string, inner *workqueue.TypedDelayingQueue[T],
) *DelayingQueue[T] {
	q := &DelayingQueue[T]{inner, newNotes[T](j, name)}
	dropWith(q, j, q.name)
	return q
}

// SnapshotOf implements workqueue.Partial.
func (q *DelayingQueue[T]) SnapshotOf(skip, limit int) workqueue.Part[T] {
	return workqueue.SnapshotOf(q.delaying, skip, limit)
}

// Find implements workqueue.Partial.
func (q *DelayingQueue[T]) Find(match func(item T) bool) workqueue.Part[T] {
	return workqueue.Find(q.delaying, match)
}

// Add notes the reason, and adds it.
func (q *DelayingQueue[T]) Add(item T) {
	q.added(item, Cause{}, false)
	q.delaying.Add(item)
}

// AddAfter notes the delay, and adds item after it.
func (q *DelayingQueue[T]) AddAfter(item T, duration time.Duration) {
	q.added(item, Cause{Kind: Delay, Delay: duration}, duration > 0)
	q.delaying.AddAfter(item, duration)
}

// Get notes the worker that gets the item.
func (q *DelayingQueue[T]) Get() (item T, shutdown bool) {
	item, shutdown = q.delaying.Get()
	q.took(item, shutdown)
	return item, shutdown
}

// GetWithContext is Get with a context.
func (q *DelayingQueue[T]) GetWithContext(ctx context.Context) (item T, shutdown bool) {
	item, shutdown = q.delaying.GetWithContext(ctx)
	q.took(item, shutdown)
	return item, shutdown
}

// Done notes the end of the work on item.
func (q *DelayingQueue[T]) Done(item T) {
	q.done(item)
	q.delaying.Done(item)
}

// RateLimitingQueue is a DelayingQueue with a rate limiter. It is a workqueue.ExtendedInterface and
// a workqueue.PriorityInterface.
type RateLimitingQueue[T comparable] struct {
	DelayingQueue[T]
	inner      workqueue.ExtendedInterface[T]
	priorities workqueue.PriorityInterface[T] // the same
}

// NewRateLimitingQueue returns a queue that notes in j, under a name, what it does with inner. It
// is for controller.Options.NewQueue, for example.
func NewRateLimitingQueue[T comparable](
	j *Journal, name string, inner workqueue.ExtendedInterface[T],
) *RateLimitingQueue[T] {
	q := &RateLimitingQueue[T]{DelayingQueue[T]{inner, newNotes[T](j, name)}, inner,
		workqueue.WithPriorities(inner)}
	dropWith(q, j, q.name)
	return q
}

// AddRateLimited notes a failure.
func (q *RateLimitingQueue[T]) AddRateLimited(item T) {
	q.added(item, Cause{Kind: Retry}, true)
	q.inner.AddRateLimited(item)
}

// AddFailed notes a failure with its error.
func (q *RateLimitingQueue[T]) AddFailed(item T, err error) {
	q.added(item, Cause{Kind: Retry, Error: printable.Short(fmt.Sprint(err))}, true)
	q.inner.AddFailed(item, err)
}

// AddWithOpts notes the reason, and adds the items.
func (q *RateLimitingQueue[T]) AddWithOpts(o workqueue.AddOpts, items ...T) {
	cause := Cause{}
	switch {
	case o.RateLimited:
		cause.Kind = Retry
		if o.Err != nil {
			cause.Error = printable.Short(fmt.Sprint(o.Err))
		}
	case o.After > 0:
		cause.Kind, cause.Delay = Delay, o.After
	}
	for _, item := range items {
		q.added(item, cause, cause.Kind != "")
	}
	q.priorities.AddWithOpts(o, items...)
}

// GetWithPriority notes the worker that gets the item.
func (q *RateLimitingQueue[T]) GetWithPriority() (item T, priority int, shutdown bool) {
	item, priority, shutdown = q.priorities.GetWithPriority()
	q.took(item, shutdown)
	return item, priority, shutdown
}

// TakenPriority implements workqueue.PriorityInterface.
func (q *RateLimitingQueue[T]) TakenPriority(item T) int { return q.priorities.TakenPriority(item) }

// Groups implements workqueue.Grouped.
func (q *RateLimitingQueue[T]) Groups(
	limit int,
) (most []workqueue.Group, all workqueue.GroupTotals) {
	if grouped, ok := q.inner.(workqueue.Grouped); ok {
		return grouped.Groups(limit)
	}
	return nil, all
}

// Forget notes a success.
func (q *RateLimitingQueue[T]) Forget(item T) {
	q.forgotten(item)
	q.inner.Forget(item)
}

// NumRequeues implements workqueue.TypedRateLimitingInterface.
func (q *RateLimitingQueue[T]) NumRequeues(item T) int { return q.inner.NumRequeues(item) }

// CancelDelayed notes that the item waits no longer, if it did.
func (q *RateLimitingQueue[T]) CancelDelayed(item T) bool {
	canceled := q.inner.CancelDelayed(item)
	if canceled && q.journal.recording() {
		q.journal.canceled(place{q.name, printable.KeyOf(item)})
	}
	return canceled
}
