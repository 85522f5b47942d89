// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"slices"
	"sync"
	"time"

	"example.com/informerstack/store"
)

// coalescedChanges are the undelivered changes of a handler with Coalesce: the source in place of a
// cursor. There is at most one merged batch per key, which contains all changes of the object since
// the handler was last notified of it. So the memory of a slow handler is bounded by the number of
// objects, not by the number of changes.
//
// A merged batch is up to three calls. A delete does not replace the update before it, because a
// handler may act on its old object, as a FilteringResourceEventHandler does. A new change is
// merged into the last calls of a pending batch as follows:
//
//	OnAdd(a)               + update to b   OnAdd(b)
//	OnUpdate(a, b)         + update to c   OnUpdate(a, c)
//	OnAdd(a)               + delete of d   OnDelete(d)
//	OnUpdate(a, b)         + delete of d   OnUpdate(a, b), OnDelete(d)
//	OnDelete(d)            + add of e      OnDelete(d), OnAdd(e)
//	OnDelete(d), OnAdd(e)  + delete of e   OnDelete(d)
//
//	C1  pending[k] is in order exactly once  <=>  a change of k is pending
//	C2  a merged batch has at most an update, a delete and an add, in this order, and not the
//	    update and the add alone
//	C3  a key keeps the position of its oldest pending change, however often it changes
//	C4  if the object's last change was a delete, the batch ends with OnDelete
//	C5  the end of the initial list has its own position, after the objects of the list
type coalescedChanges struct {
	log    *changeLog // it takes the batches of this log
	keyOf  store.KeyFunc
	wanted func(*batch) []change

	mu      sync.Mutex
	pending map[string]*merged
	order   []*merged
	calls   int64
	taken   *merged
}

type merged struct {
	key string
	batch
}

func newCoalescedChanges(wanted func(*batch) []change) *coalescedChanges {
	return &coalescedChanges{
		keyOf:   store.DeletionHandlingMetaNamespaceKeyFunc,
		wanted:  wanted,
		pending: map[string]*merged{},
	}
}

// coalesce returns the changes that c reads. The processor's mu is held.
func coalesce(c *cursor) *coalescedChanges {
	b := newCoalescedChanges(c.wanted)
	for in := c.next(); in != nil; in = c.next() {
		b.push(in)
	}
	b.log = c.log
	b.log.merging = append(b.log.merging, b)
	return b
}

// push merges the changes of the batch.
func (b *coalescedChanges) push(in *batch) {
	wanted := b.wanted(in) // it calls methods of the objects
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range wanted {
		b.pushLocked(c, in.at)
	}
	if len(in.changes) == 0 { // the end of the initial list
		b.order = append(b.order, &merged{batch: batch{at: in.at}})
	}
}

func (b *coalescedChanges) pushLocked(c change, at time.Time) {
	key, err := b.keyOf(c.newObj)
	e, pending := b.pending[key]
	if err == nil && pending {
		before := len(e.changes)
		e.merge(c)
		b.calls += int64(len(e.changes) - before)
		return
	}
	e = &merged{batch: batch{changes: []change{c}, at: at}}
	if err == nil { // a change without a key is not merged
		e.key = key
		b.pending[key] = e
	}
	b.order = append(b.order, e)
	b.calls++
}

// merge adds c to the batch, by the table at coalescedChanges.
func (e *merged) merge(c change) {
	n := len(e.changes) - 1
	last := &e.changes[n]
	switch {
	case c.kind == deleted && last.kind == deleted: // the handler knows the object of the first
	case c.kind == deleted && last.kind == added && n == 0:
		*last = c
	case c.kind == deleted && last.kind == added: // the handler does not know the successor
		*last = change{}
		e.changes = e.changes[:n]
	case c.kind == deleted, last.kind == deleted:
		e.changes = append(e.changes, c)
	default:
		last.newObj = c.newObj
		last.resync = last.resync && c.resync
	}
}

// next returns one batch. If it returned several, an object could change while it is among them,
// and would then be pending twice.
func (b *coalescedChanges) next() *batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken = nil
	if len(b.order) == 0 {
		return nil
	}
	e := b.order[0]
	b.order[0] = nil
	b.order = b.order[1:]
	if b.pending[e.key] == e {
		delete(b.pending, e.key)
	}
	b.taken = e
	return &e.batch
}

// close ends the pushes.
func (b *coalescedChanges) close() {
	b.log.merging = slices.DeleteFunc(b.log.merging,
		func(m *coalescedChanges) bool { return m == b })
}

func (b *coalescedChanges) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pending, b.order = map[string]*merged{}, nil
}

func (b *coalescedChanges) due() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

func (b *coalescedChanges) oldest() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.taken != nil:
		return b.taken.at
	case len(b.order) > 0:
		return b.order[0].at
	}
	return time.Now()
}
