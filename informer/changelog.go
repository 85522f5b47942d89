// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"example.com/informerstack/internal/helpers/objects"
	"example.com/informerstack/store"
)

// changeLog holds the changes that handlers are notified of, in order. A change is appended once;
// each handler reads at its own pace with a cursor. So a handler costs the writer almost nothing,
// and slow handlers share the batches that they have not read. A batch that every cursor has passed
// is garbage.
//
// Posts on client-go describe two goroutines for each handler: pop takes changes from addCh into
// the buffer pendingNotifications, and run takes them from nextCh. Here the log is the buffer of
// all handlers, and a cursor in it takes the place of both channels.
//
//	read by all | fast handler's cursor         | last
//	            v                               v
//	... -> [a, b] -> [c] -> [d, e, f] -> [g] -> [ ]
//	          ^
//	          slow handler's cursor
//
//	W1  last is the only batch without a next; it is empty
//	W2  a batch with a next does not change any more
//	W3  a cursor that has read all batches is at last, and so keeps no object alive
//	W4  a batch with a next and without changes marks the end of the initial list
//
// The processor's mu guards last and merging. Readers do not need it.
type changeLog struct {
	last     *batch
	merging  []*coalescedChanges // each takes every batch that is appended
	appended atomic.Int64        // number of changes ever appended
}

func newChangeLog() *changeLog { return &changeLog{last: &batch{}} }

// batchLen is the maximum number of changes in a batch. Delivered changes stay reachable until the
// rest of their batch is delivered. Tests lower it.
var batchLen = 64

// batch is a list of changes that were appended together.
type batch struct {
	changes []change
	// round selects the handlers that get updates without a change.
	round resyncRound
	// at is the time of the append.
	at time.Time

	next atomic.Pointer[batch] // nil while the batch is last
}

// append copies changes to the end of the log and returns the batch that holds them.
func (l *changeLog) append(changes []change, round resyncRound) *batch {
	b := l.last
	b.changes, b.round, b.at = slices.Clone(changes), round, time.Now()
	l.last = &batch{}
	l.appended.Add(int64(len(changes)))
	b.next.Store(l.last)
	for _, m := range l.merging {
		m.push(b)
	}
	return b
}

// cursor is a reader's position in a changeLog, and the source of a handler without Coalesce.
type cursor struct {
	log *changeLog
	// wanted chooses among the changes of a batch. It is called if the batch has a round, or if
	// selective is true.
	wanted    func(*batch) []change
	selective bool

	mu      sync.Mutex
	at      *batch // the batch to read next, or that of the last result of next; nil once dropped
	reading bool   // next has returned at
	end     *batch // the end of reading; nil until closed
	endLen  int64  // number of changes in the log when it was closed
	before  int64  // number of changes in the log, less those that are due in their place
}

// newCursor returns a cursor at the end of the log. It first reads a replay of its own: changes,
// and the end of the initial list if synced.
func (l *changeLog) newCursor(replay []change, synced bool) *cursor {
	c := &cursor{log: l, at: l.last, before: l.appended.Load() - int64(len(replay))}
	own := newChangeLog()
	first, last := own.last, (*batch)(nil)
	for some := range slices.Chunk(replay, batchLen) {
		last = own.append(some, nil)
	}
	if synced {
		last = own.append(nil, nil)
	}
	if last != nil { // the replay leads to the end of the log
		last.next.Store(l.last)
		c.at = first
	}
	return c
}

// next returns the next batch that has changes that are wanted, or marks the end of the list.
func (c *cursor) next() *batch {
	for {
		c.mu.Lock()
		if c.reading {
			c.at = c.at.next.Load()
		}
		b := c.at
		reading := b != nil && b != c.end && b.next.Load() != nil
		c.reading = reading
		c.mu.Unlock()
		switch {
		case !reading:
			return nil
		case len(b.changes) == 0, !c.selective && b.round == nil:
			return b
		}
		if b = c.choose(b); len(b.changes) > 0 {
			return b
		}
	}
}

// choose returns b with the changes that are wanted. It calls methods of the objects, and so holds
// no lock during that.
func (c *cursor) choose(b *batch) *batch {
	own := c.wanted(b)
	if len(own) > 0 && &own[0] == &b.changes[0] {
		return b // all are
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.before += int64(len(b.changes) - len(own))
	return &batch{changes: own}
}

// close makes reading end at the current end of the log.
func (c *cursor) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end, c.endLen = c.log.last, c.log.appended.Load()
}

// drop ends reading at once. Then the cursor keeps no batch alive.
func (c *cursor) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.reading = nil, false
	if c.end != nil {
		c.end = &batch{}
	}
}

func (c *cursor) due() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.end != nil {
		return c.endLen - c.before
	}
	return c.log.appended.Load() - c.before
}

func (c *cursor) oldest() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at == nil || c.at.next.Load() == nil {
		return time.Now()
	}
	return c.at.at
}

type changeKind uint8

const (
	added changeKind = iota
	updated
	deleted
)

// change is one notification of a handler: a change of the store, or a replay.
type change struct {
	kind    changeKind
	initial bool // added: OnAdd's isInInitialList
	resync  bool // updated: a replay of the stored object
	oldObj  any  // updated
	newObj  any  // added, updated; deleted: the object's last state or its tombstone
}

func add(obj any, initial bool) change {
	return change{kind: added, newObj: obj, initial: initial}
}

func remove(obj any) change { return change{kind: deleted, newObj: obj} }

// deliver calls the handler's method for c.
func (c *change) deliver(handler ResourceEventHandler) {
	switch c.kind {
	case added:
		handler.OnAdd(c.newObj, c.initial)
	case updated:
		handler.OnUpdate(c.oldObj, c.newObj)
	case deleted:
		handler.OnDelete(c.newObj)
	default:
		panic(fmt.Sprintf("informer: change of kind %d", c.kind)) // a bug: there are three kinds
	}
}

// unchanged is true if both objects of an update are the same version.
func (c *change) unchanged() bool {
	return c.kind == updated && objects.SameVersion(c.oldObj, c.newObj)
}

// recreated is true if both objects have metadata and different UIDs.
func (c *change) recreated() bool {
	if c.kind != updated {
		return false
	}
	before, errBefore := meta.Accessor(c.oldObj)
	after, errAfter := meta.Accessor(c.newObj)
	return errBefore == nil && errAfter == nil && before.GetUID() != after.GetUID()
}

// split returns the two changes that an update of two different objects hides: the delete of the
// old object, which the watch did not report, and the add of the new one.
func (c *change) split() (end, begin change) {
	key, _ := store.MetaNamespaceKeyFunc(c.oldObj) // recreated has read the metadata of the key
	return remove(store.DeletedFinalStateUnknown{Key: key, Obj: c.oldObj}), add(c.newObj, false)
}
