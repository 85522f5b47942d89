// SPDX-License-Identifier: Apache-2.0

package informer

import "example.com/informerstack/store"

// batch is changes that were handed over together. All handlers share it: nobody may change it.
type batch []change

// owed is how many initial adds are in the batch.
func (b batch) owed() int64 {
	n := int64(0)
	for i := range b {
		n += int64(b[i].owed)
	}
	return n
}

// backlog is what one handler has still to be told, oldest first. Its listener's mu guards it.
type backlog interface {
	// push appends changes. It returns by how many calls the backlog grew: as many, or less if some were merged into what
	// waits.
	push(b batch) (grownCalls int)
	// take removes what is to be delivered next. The slice belongs to the caller until it calls take again.
	take() []batch
	// oldest is when the first change was pushed; ok is false if nothing waits.
	oldest() (at uptime, ok bool)
	// drop forgets everything.
	drop()
}

// keptBufferLen is the longest buffer that a drained backlog keeps for reuse. What a burst needed beyond it is given back.
const keptBufferLen = 256

// fullBacklog keeps every change. Its reader takes all that waits at once, so that writer and reader meet as seldom as they
// can.
//
// Laws:
//
//	F1  what take returned and what it will return, in order, is what was pushed
//	F2  a slot that is not in waiting or in what was taken last holds no batch
type fullBacklog struct {
	waiting []batch
	spare   []batch // what was taken last: cleared by its reader, and filled again after the next take
}

func (f *fullBacklog) push(b batch) int {
	f.waiting = append(f.waiting, b)
	return len(b)
}

func (f *fullBacklog) take() []batch {
	taken := f.waiting
	f.waiting = f.spare[:0]
	if cap(taken) <= keptBufferLen {
		f.spare = taken
	} else {
		f.spare = nil
	}
	return taken
}

func (f *fullBacklog) oldest() (uptime, bool) {
	if len(f.waiting) == 0 {
		return 0, false
	}
	return f.waiting[0][0].at, true
}

func (f *fullBacklog) drop() { f.waiting, f.spare = nil, nil }

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
type coalescingBacklog struct {
	keyOf   store.KeyFunc
	entries map[string]*entry
	order   []*entry
	taken   [1]batch
}

type entry struct {
	key     string
	changes batch
}

func newCoalescingBacklog() *coalescingBacklog {
	return &coalescingBacklog{keyOf: store.DeletionHandlingMetaNamespaceKeyFunc, entries: map[string]*entry{}}
}

func (b *coalescingBacklog) push(changes batch) (grown int) {
	for _, c := range changes {
		grown += b.pushOne(c)
	}
	return grown
}

func (b *coalescingBacklog) pushOne(c change) int {
	key, err := b.keyOf(c.newObj)
	if err != nil {
		b.order = append(b.order, &entry{changes: batch{c}}) // without a key it is merged with nothing
		return 1
	}
	e, ok := b.entries[key]
	if !ok {
		e = &entry{key: key, changes: batch{c}}
		b.entries[key] = e
		b.order = append(b.order, e)
		return 1
	}
	before := len(e.changes)
	e.merge(c)
	return len(e.changes) - before
}

// merge makes the entry stand for c too; the table at coalescingBacklog says how.
func (e *entry) merge(c change) {
	last := &e.changes[len(e.changes)-1]
	switch {
	case c.kind != deleted && last.kind == deleted:
		e.changes = append(e.changes, c)
	case c.kind != deleted:
		last.newObj = c.newObj
		last.resync = last.resync && c.resync
		last.owed += c.owed
	default:
		for _, waiting := range e.changes {
			c.owed += waiting.owed
		}
		first := e.changes[0]
		if first.kind == deleted {
			c.newObj = first.newObj // the object that the handler knew
		}
		c.at = first.at
		e.changes = append(e.changes[:0], c)
		clear(e.changes[1:cap(e.changes)])
	}
}

// take returns one entry: were it more, an object could change while it waits in what was taken, and wait twice.
func (b *coalescingBacklog) take() []batch {
	if len(b.order) == 0 {
		return nil
	}
	e := b.order[0]
	b.order[0] = nil
	b.order = b.order[1:]
	if b.entries[e.key] == e {
		delete(b.entries, e.key)
	}
	b.taken[0] = e.changes
	return b.taken[:]
}

func (b *coalescingBacklog) oldest() (uptime, bool) {
	if len(b.order) == 0 {
		return 0, false
	}
	return b.order[0].changes[0].at, true
}

func (b *coalescingBacklog) drop() { b.entries, b.order = map[string]*entry{}, nil }
