// SPDX-License-Identifier: Apache-2.0

package workqueue

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"sync"
	"time"
)

// Fair is a queue like Typed in which items have priorities, and groups of items take turns. Use it
// as Config.Queue. Without groups and priorities its order is first in, first out.
//
//	            Add                     Get                  Done
//	unknown ----------> queued -------------> processing ------------> unknown
//	                       ^                      | Add
//	                       |                      v
//	                       +------------- processing, again
//	                            Done
//
// One entry has all that is known of an item; turns orders the queued ones.
//
//	Q1  an item is known exactly if it is queued or a worker has it; not both
//	Q2  an item is processing exactly if a worker has it
//	Q3  no caller of Get waits while the queue has an item that may be handed out
//	Q4  the priority of an item is the highest of its adds since the last Get
type Fair[T comparable] struct {
	config              FairConfig[T]
	metrics             *queueMetrics // may be nil
	drainProcessingOnly bool

	mu           sync.Mutex
	known        map[T]*entry[T]
	mostKnown    int // since known was allocated
	spare        spareEntries[T]
	turns        turns[T]
	processing   entries[T] // longest first
	again        int        // number of items that were added while a worker has them
	gets         uint64     // number of calls of Get that returned an item
	added        sync.Cond  // wakes callers of Get
	shuttingDown bool
	shutDowns    int       // number of calls of ShutDown; each of them ends the drains before it
	drained      sync.Cond // wakes callers of ShutDownWithDrain
}

// entry is what a Fair knows of an item.
type entry[T comparable] struct {
	item           T
	group          *group[T]
	part           *part[T] // that it is queued in, or nil while a worker has it
	previous, next *entry[T]
	priority       int // while it is queued or again
	taken          int // the priority with which a worker got it
	again          bool
	added, since   time.Duration // queueMetrics.now of the Add and of the Get, or 0
}

// FairConfig says which items take turns in a Fair. Its functions are called under the queue's
// lock: they must be fast, must not call the queue, and should not panic. Weight and Workers are
// called when the first item of a group is added.
type FairConfig[T comparable] struct {
	// Group returns the group of an item, such as its namespace. It must always return the same for
	// the same item. If nil, all items are in one group.
	Group func(item T) string
	// Weight is how many items of a group are handed out in its turn. If Weight is nil, or its
	// result less than 1, one is.
	Weight func(group string) int
	// Workers is how many items of a group workers may have at once. If Workers is nil, or its
	// result less than 1, there is no limit.
	Workers func(group string) int
	// Patience is how many items of other priorities are handed out, at most, before the next one
	// of a lower priority is; with several lower priorities, one more for each of them. 0 means 32.
	// If it is negative, an item waits while others of a higher priority are queued.
	Patience int
}

const (
	// defaultPatience is the Patience if none is given.
	defaultPatience = 32
	// groupsReported is the number of groups that Metrics.Groups gets at most.
	groupsReported = 10
)

// NewFair returns a queue. It uses Metrics, Clock and DrainProcessingOnly of config. If
// Metrics.Unfinished or Metrics.Groups is set, it starts a goroutine, which ShutDown ends.
func NewFair[T comparable](fair FairConfig[T], config Config[T]) *Fair[T] {
	if fair.Group == nil {
		fair.Group = func(T) string { return "" }
	}
	patience := uint64(cmp.Or(max(fair.Patience, 0), defaultPatience))
	if fair.Patience < 0 {
		patience = math.MaxUint64
	}
	q := &Fair[T]{
		config:              fair,
		drainProcessingOnly: config.DrainProcessingOnly,
		known:               map[T]*entry[T]{},
		turns: turns[T]{patience: patience, groups: map[string]*group[T]{},
			levels: map[int]*level[T]{}},
	}
	q.added.L, q.drained.L = &q.mu, &q.mu
	metrics := config.Metrics
	if metrics.Groups != nil {
		metrics.Unfinished = func(total, longest time.Duration) {
			if config.Metrics.Unfinished != nil {
				config.Metrics.Unfinished(total, longest)
			}
			metrics.Groups(q.Groups(groupsReported))
		}
	}
	if metrics.PriorityDepth != nil {
		metrics.Depth = nil
	}
	q.metrics = newQueueMetrics(metrics, orRealClock(config.Clock))
	q.metrics.start(q.unfinished)
	return q
}

// Add is AddWithPriority with the priority 0.
func (q *Fair[T]) Add(item T) { q.AddWithPriority(item, 0) }

// AddWithPriority queues item, unless a worker has it: then the worker's Done queues it. An item
// that is queued already is not queued twice; if its priority rises, it goes to the end of its
// group's items of that priority. AddWithPriority is ignored after ShutDown.
func (q *Fair[T]) AddWithPriority(item T, priority int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shuttingDown {
		return
	}
	e := q.known[item]
	switch {
	case e == nil:
		g := q.groupLocked(item)
		e = q.spare.take()
		e.item, e.group, e.priority = item, g, priority
		g.known++
		q.known[item] = e
		q.mostKnown = max(q.mostKnown, len(q.known))
		q.pushLocked(e)
	case e.part != nil:
		if priority > e.priority {
			q.turns.remove(e)
			q.raiseLocked(e, priority)
			q.turns.push(e)
		}
		return
	case e.again:
		if priority > e.priority {
			q.raiseLocked(e, priority)
		}
		return
	default:
		e.again, e.priority = true, priority
		q.again++
	}
	if q.metrics != nil {
		e.added = q.metrics.added()
		q.metrics.depthAt(priority, 1)
	}
}

// raiseLocked gives an item, which is queued or again, a higher priority.
func (q *Fair[T]) raiseLocked(e *entry[T], priority int) {
	if q.metrics != nil {
		q.metrics.depthAt(e.priority, -1)
		q.metrics.depthAt(priority, 1)
	}
	e.priority = priority
}

// groupLocked returns the group of an item that is not known.
func (q *Fair[T]) groupLocked(item T) *group[T] {
	name := q.config.Group(item)
	g := q.turns.groups[name]
	if g == nil {
		g = &group[T]{name: name, weight: 1}
		if q.config.Weight != nil {
			g.weight = max(1, q.config.Weight(name))
		}
		if q.config.Workers != nil {
			g.limit = max(0, q.config.Workers(name))
		}
		q.turns.groups[name] = g
	}
	return g
}

func (q *Fair[T]) pushLocked(e *entry[T]) {
	q.turns.push(e)
	q.added.Signal()
}

// Get moves the next item from the queue to the caller, and blocks until there is one. The caller
// must call Done when it has worked on the item. Get returns shutdown = true once the queue is shut
// down and empty. It waits for an item that its group's limit keeps back.
func (q *Fair[T]) Get() (item T, shutdown bool) {
	item, _, shutdown = q.get(context.Background())
	return item, shutdown
}

// GetWithContext is Get for a worker that also stops when ctx ends: it then returns shutdown =
// true, and the queue keeps its items. If ctx has ended and an item is queued, the item stays.
func (q *Fair[T]) GetWithContext(ctx context.Context) (item T, shutdown bool) {
	item, _, shutdown = q.get(ctx)
	return item, shutdown
}

// GetWithPriority is Get, and returns the item's priority.
func (q *Fair[T]) GetWithPriority() (item T, priority int, shutdown bool) {
	return q.get(context.Background())
}

func (q *Fair[T]) get(ctx context.Context) (item T, priority int, shutdown bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.turns.ready == 0 && ctx.Done() != nil { // it can end while this caller waits
		defer context.AfterFunc(ctx, q.wakeAll)()
	}
	for q.turns.ready == 0 && (!q.shuttingDown || q.turns.held > 0) && ctx.Err() == nil {
		q.added.Wait()
	}
	if ctx.Err() != nil || q.turns.ready == 0 {
		q.added.Signal() // the item for which this caller was woken is for the next one
		return item, 0, true
	}
	e := q.turns.pop()
	if q.shuttingDown && q.queuedLocked() == 0 {
		q.added.Broadcast() // no caller has to wait for held items any more
	}
	q.gets++
	e.taken = e.priority
	q.processing.pushBack(e)
	if q.metrics != nil {
		e.since = q.metrics.taken(e.added)
		q.metrics.depthAt(e.taken, -1)
	}
	return e.item, e.taken, false
}

// TakenPriority returns the priority with which a worker got item, or 0.
func (q *Fair[T]) TakenPriority(item T) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	if e := q.known[item]; e != nil && e.part == nil {
		return e.taken
	}
	return 0
}

// wakeAll makes every caller of Get, and every drain, look again.
func (q *Fair[T]) wakeAll() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.added.Broadcast()
	q.drained.Broadcast()
}

// Done ends the caller's work on item. If the item was added meanwhile, Done queues it again. Done
// is a no-op for an item that no worker has.
func (q *Fair[T]) Done(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e := q.known[item]
	if e == nil || e.part != nil {
		return
	}
	if q.metrics != nil {
		q.metrics.finished(e.since)
	}
	q.processing.remove(e)
	q.turns.setWorking(e.group, -1)
	if e.group.limit > 0 {
		q.added.Signal() // another item of the group may have waited for this
	}
	if q.shuttingDown {
		q.drained.Broadcast()
	}
	if e.again {
		e.again = false
		q.again--
		q.pushLocked(e)
		return
	}
	q.forgetLocked(e)
}

// forgetLocked removes an item that is neither queued nor processing.
func (q *Fair[T]) forgetLocked(e *entry[T]) {
	delete(q.known, e.item)
	if e.group.known--; e.group.known == 0 {
		delete(q.turns.groups, e.group.name)
	}
	q.spare.put(e)
	if len(q.known) == 0 && q.mostKnown > keptItems {
		q.known, q.mostKnown = map[T]*entry[T]{}, 0 // a built-in map does not shrink
		q.spare = spareEntries[T]{}
	}
}

// unfinished returns the sum and the maximum of the times for which workers have had their items.
func (q *Fair[T]) unfinished() (total, longest time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.metrics.now()
	q.processing.all(func(e *entry[T]) bool {
		total += now - e.since
		longest = max(longest, now-e.since)
		return true
	})
	return total, longest
}

// Len is the number of queued items, with those that wait because of their group's limit. Items
// that workers have, and items that wait for their time, are not queued.
func (q *Fair[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.queuedLocked()
}

func (q *Fair[T]) queuedLocked() int { return q.turns.ready + q.turns.held }

// ShutDown refuses new items. The queued ones are still handed out, then workers get shutdown =
// true. It ends the wait of every ShutDownWithDrain before it. It waits for the goroutine of the
// metrics, but not for workers. It may be called again.
func (q *Fair[T]) ShutDown() {
	q.refuse(true)
	q.metrics.stop()
	q.metrics.released()
}

// ShutDownWithDrain is ShutDown, and waits until no item is queued and no worker has one. It
// therefore needs workers that call Get until it returns shutdown = true. Another ShutDown ends
// the wait.
func (q *Fair[T]) ShutDownWithDrain() {
	q.drain(context.Background(), q.drainProcessingOnly)
}

// drain is ShutDownWithDrain until ctx ends.
func (q *Fair[T]) drain(ctx context.Context, processingOnly bool) {
	shutDowns := q.refuse(false)
	q.metrics.stop()
	defer q.metrics.released()
	defer context.AfterFunc(ctx, q.wakeAll)()

	q.mu.Lock()
	defer q.mu.Unlock()
	isDrained := func() bool {
		return q.processing.len == 0 && (processingOnly || q.queuedLocked() == 0)
	}
	for !isDrained() && q.shutDowns == shutDowns && ctx.Err() == nil {
		q.drained.Wait()
	}
}

// refuse makes Add refuse items and wakes every caller of Get. It returns the number of calls of
// ShutDown.
func (q *Fair[T]) refuse(endDrains bool) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shuttingDown = true
	q.added.Broadcast()
	if endDrains {
		q.shutDowns++
		q.drained.Broadcast()
	}
	return q.shutDowns
}

// ShuttingDown reports whether the queue refuses new items.
func (q *Fair[T]) ShuttingDown() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.shuttingDown
}

// GroupTotals are the sums over all groups of a queue.
type GroupTotals struct{ Groups, Queued, Working int }

// Group is what a queue says of a group of items.
type Group struct {
	Name    string
	Queued  int // items that no worker has
	Working int // items that workers have
	Weight  int
	Workers int // the most items that workers may have, or 0
}

// Groups implements Grouped. It looks at all groups under the lock.
func (q *Fair[T]) Groups(limit int) (most []Group, all GroupTotals) {
	q.mu.Lock()
	most = make([]Group, 0, len(q.turns.groups))
	for _, g := range q.turns.groups {
		most = append(most, g.shown())
	}
	all = GroupTotals{Groups: len(most), Queued: q.queuedLocked(), Working: q.processing.len}
	q.mu.Unlock()
	slices.SortFunc(most, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Queued, a.Queued), cmp.Compare(b.Working, a.Working),
			cmp.Compare(a.Name, b.Name))
	})
	return slices.Clone(most[:min(limit, len(most))]), all
}

// Snapshot copies the content of the queue under its lock. In Ready the next item is first, and
// then those of the highest priority, in the order of their turns.
func (q *Fair[T]) Snapshot() Snapshot[T] { return q.SnapshotOf(0, math.MaxInt).Snapshot }

// SnapshotOf implements Partial. The order of Ready is that of Snapshot.
func (q *Fair[T]) SnapshotOf(skip, limit int) Part[T] {
	q.mu.Lock()
	defer q.mu.Unlock()
	p := q.partLocked()
	passed := 0
	q.turns.all(func(e *entry[T]) bool {
		if len(p.Ready) == limit {
			return false
		}
		if passed++; passed <= skip {
			return true
		}
		p.Ready = append(p.Ready, e.item)
		p.notePriority(e.item, e.priority)
		if e.group.isFull() {
			if p.Held == nil {
				p.Held = map[T]Group{}
			}
			p.Held[e.item] = e.group.shown()
		}
		return true
	})
	passed = 0
	q.processing.all(func(e *entry[T]) bool {
		if len(p.Processing) == limit {
			return false
		}
		if passed++; passed <= skip {
			return true
		}
		p.Processing = append(p.Processing, e.item)
		if e.again {
			p.Again = append(p.Again, e.item)
		}
		return true
	})
	return p
}

// Find implements Partial. It copies the items under the lock.
func (q *Fair[T]) Find(match func(item T) bool) Part[T] {
	all := q.SnapshotOf(0, math.MaxInt)
	other := func(item T) bool { return !match(item) }
	all.Ready = slices.DeleteFunc(all.Ready, other)
	all.Processing = slices.DeleteFunc(all.Processing, other)
	all.Again = slices.DeleteFunc(all.Again, other)
	maps.DeleteFunc(all.Priorities, func(item T, _ int) bool { return other(item) })
	maps.DeleteFunc(all.Held, func(item T, _ Group) bool { return other(item) })
	return all
}

func (q *Fair[T]) partLocked() Part[T] {
	p := Part[T]{Total: Totals{Ready: q.queuedLocked(), Processing: q.processing.len,
		Again: q.again}}
	p.Taken = q.gets
	return p
}
