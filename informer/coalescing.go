// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"sync"
	"time"

	"example.com/informerstack/store"
)

// coalescingBacklog holds at most one entry per key, which contains all changes of the object since
// the handler was last notified of it. So the memory of a slow handler is bounded by the number of
// objects, not by the number of changes.
//
// An entry is up to three calls. A delete does not replace the update before it, because a handler
// may act on its old object, as a FilteringResourceEventHandler does. A new change is merged into
// the last calls of a pending entry as follows:
//
//	OnAdd(a)               + update to b   OnAdd(b)
//	OnUpdate(a, b)         + update to c   OnUpdate(a, c)
//	OnAdd(a)               + delete of d   OnDelete(d)
//	OnUpdate(a, b)         + delete of d   OnUpdate(a, b), OnDelete(d)
//	OnDelete(d)            + add of e      OnDelete(d), OnAdd(e)
//	OnDelete(d), OnAdd(e)  + delete of e   OnDelete(d)
//
//	C1  entries[k] is in order exactly once  <=>  a change of k is pending
//	C2  an entry has at most an update, a delete and an add, in this order, and not the update and
//	    the add alone
//	C3  a key keeps the position of its oldest pending change, however often it changes
//	C4  if the object's last change was a delete, the entry ends with OnDelete
//	C5  the end of the initial list has its own position, after the objects of the list
type coalescingBacklog struct {
	keyOf  store.KeyFunc
	wanted func(*batch) []change

	mu      sync.Mutex
	entries map[string]*entry
	order   []*entry
	calls   int64
	taken   *entry
}

type entry struct {
	key string
	batch
}

func newCoalescingBacklog(wanted func(*batch) []change) *coalescingBacklog {
	return &coalescingBacklog{
		keyOf:   store.DeletionHandlingMetaNamespaceKeyFunc,
		wanted:  wanted,
		entries: map[string]*entry{},
	}
}

// push adds a batch that was appended to the changeLog. The processor's mu is held.
func (b *coalescingBacklog) push(in *batch) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.wanted(in) {
		b.pushLocked(c, in.at)
	}
	if in.synced {
		b.order = append(b.order, &entry{batch: batch{synced: true, at: in.at}})
	}
}

func (b *coalescingBacklog) pushLocked(c change, at time.Time) {
	key, err := b.keyOf(c.newObj)
	e, pending := b.entries[key]
	if err == nil && pending {
		before := len(e.changes)
		e.merge(c)
		b.calls += int64(len(e.changes) - before)
		return
	}
	e = &entry{batch: batch{changes: []change{c}, at: at}}
	if err == nil { // a change without a key is not merged
		e.key = key
		b.entries[key] = e
	}
	b.order = append(b.order, e)
	b.calls++
}

// merge adds c to the entry, by the table at coalescingBacklog.
func (e *entry) merge(c change) {
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

// next returns one entry. If it returned several, an object could change while it is among them,
// and would then be pending twice.
func (b *coalescingBacklog) next() *batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.taken = nil
	if len(b.order) == 0 {
		return nil
	}
	e := b.order[0]
	b.order[0] = nil
	b.order = b.order[1:]
	if b.entries[e.key] == e {
		delete(b.entries, e.key)
	}
	b.taken = e
	return &e.batch
}

func (b *coalescingBacklog) close() {}

func (b *coalescingBacklog) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries, b.order = map[string]*entry{}, nil
}

func (b *coalescingBacklog) appended() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

func (b *coalescingBacklog) oldest() time.Time {
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
