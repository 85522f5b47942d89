// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"sync"

	"example.com/informerstack/store"
)

// backlog is what one handler has still to be told, oldest first. The processor's mu is held by who pushes or closes; one
// goroutine takes; the rest may be called by anyone.
type backlog interface {
	// push notes a parcel that was appended to the flow.
	push(p *parcel)
	// take returns what is to be delivered next, or nil if there is nothing; what it returned before is done with.
	take() *parcel
	// close ends the backlog with what was pushed so far.
	close()
	// drop forgets what waits. A take after it returns nil.
	drop()
	// handed is how many calls have become due, those included that were made since.
	handed() int64
	// oldest is when the oldest of what is not done with was pushed.
	oldest() uptime
}

// coalescingBacklog keeps at most one entry a key, which stands for everything that happened to the object since the handler
// was last told of it. A slow handler costs memory by the number of objects, not by the number of changes.
//
// An entry is one call, or two: OnDelete of the object that the handler knew, then OnAdd of its successor. What waits, and
// what happens, become:
//
//	OnAdd(a)               + update to b   OnAdd(b)
//	OnUpdate(a, b)         + update to c   OnUpdate(a, c)
//	OnAdd / OnUpdate       + delete of d   OnDelete(d)
//	OnDelete(d)            + add of e      OnDelete(d), OnAdd(e)
//	OnDelete(d), OnAdd(e)  + delete of e   OnDelete(d)
//
// Laws:
//
//	C1  entries[k] is in order exactly once  <=>  something waits for k
//	C2  an entry has one change, or two of which the first is a delete and the second is none
//	C3  a key stays in the place where its oldest change was pushed, however often it changes
//	C4  if the object's last change was a delete, the entry ends with OnDelete
//	C5  the end of the initial list has a place of its own: once it is taken, what was in the list has been
type coalescingBacklog struct {
	keyOf  store.KeyFunc
	wanted func(*parcel) []change

	mu      sync.Mutex
	entries map[string]*entry
	order   []*entry
	calls   int64
	taken   *entry
}

type entry struct {
	key string
	parcel
}

func newCoalescingBacklog(wanted func(*parcel) []change) *coalescingBacklog {
	return &coalescingBacklog{keyOf: store.DeletionHandlingMetaNamespaceKeyFunc, wanted: wanted, entries: map[string]*entry{}}
}

func (b *coalescingBacklog) push(p *parcel) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.wanted(p) {
		b.pushLocked(c, p.at)
	}
	if p.synced {
		b.order = append(b.order, &entry{parcel: parcel{synced: true, at: p.at}})
	}
}

func (b *coalescingBacklog) pushLocked(c change, at uptime) {
	key, err := b.keyOf(c.newObj)
	e, waits := b.entries[key]
	if err == nil && waits {
		before := len(e.changes)
		e.merge(c)
		b.calls += int64(len(e.changes) - before)
		return
	}
	e = &entry{parcel: parcel{changes: []change{c}, at: at}}
	if err == nil { // without a key it is merged with nothing
		e.key = key
		b.entries[key] = e
	}
	b.order = append(b.order, e)
	b.calls++
}

// merge makes the entry stand for c too; the table at coalescingBacklog says how.
func (e *entry) merge(c change) {
	last := &e.changes[len(e.changes)-1]
	switch {
	case c.kind == deleted:
		if e.changes[0].kind == deleted {
			c = e.changes[0] // the object that the handler knew
		}
		clear(e.changes)
		e.changes = append(e.changes[:0], c)
	case last.kind == deleted:
		e.changes = append(e.changes, c)
	default:
		last.newObj = c.newObj
		last.resync = last.resync && c.resync
	}
}

// take returns one entry: were it more, an object could change while it waits in what was taken, and wait twice.
func (b *coalescingBacklog) take() *parcel {
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
	return &e.parcel
}

func (b *coalescingBacklog) close() {}

func (b *coalescingBacklog) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries, b.order = map[string]*entry{}, nil
}

func (b *coalescingBacklog) handed() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.calls
}

func (b *coalescingBacklog) oldest() uptime {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.taken != nil:
		return b.taken.at
	case len(b.order) > 0:
		return b.order[0].at
	}
	return now()
}
