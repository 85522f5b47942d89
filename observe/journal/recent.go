// SPDX-License-Identifier: Apache-2.0

package journal

import "time"

// recent is a map of at most maxKeys entries with at most maxBytes, except the one that was put
// last. If there is no room, those are dropped that were used longest ago.
//
//	R1  the entries are a ring in the order of their last use, with root before the last used
//	R2  bytes is the sum of the bytes of the entries
type recent[K comparable, V any] struct {
	entries map[K]*pair[K, V]
	root    pair[K, V]
	bytes   int
	lost    time.Time // when an entry was dropped last
}

// pair is an entry. It is empty once it was dropped.
type pair[K comparable, V any] struct {
	next, previous *pair[K, V] // nil once it was dropped
	key            K
	value          V
	bytes          int
}

func newRecent[K comparable, V any]() *recent[K, V] {
	r := &recent[K, V]{entries: map[K]*pair[K, V]{}}
	r.root.next, r.root.previous = &r.root, &r.root
	return r
}

// get returns the entry of a key, or nil.
func (r *recent[K, V]) get(key K) *pair[K, V] {
	p := r.entries[key]
	if p != nil {
		r.use(p)
	}
	return p
}

// put adds or replaces a value of about so many bytes.
func (r *recent[K, V]) put(key K, value V, bytes int) *pair[K, V] {
	p := r.entries[key]
	if p == nil {
		p = &pair[K, V]{key: key}
		r.entries[key] = p
		r.link(p)
	}
	p.value = value
	r.resize(p, bytes)
	return p
}

// resize uses an entry, which has so many bytes now. It is a no-op for one that was dropped.
func (r *recent[K, V]) resize(p *pair[K, V], bytes int) {
	if p.isDropped() {
		return
	}
	r.use(p)
	r.bytes += bytes - p.bytes
	p.bytes = bytes
	for len(r.entries) > 1 && (len(r.entries) > maxKeys || r.bytes > maxBytes) {
		oldest := r.root.previous
		r.unlink(oldest)
		delete(r.entries, oldest.key)
		r.bytes -= oldest.bytes
		*oldest = pair[K, V]{}
		r.lost = time.Now()
	}
}

func (p *pair[K, V]) isDropped() bool { return p.next == nil }

func (r *recent[K, V]) use(p *pair[K, V]) {
	if r.root.next != p {
		r.unlink(p)
		r.link(p)
	}
}

func (r *recent[K, V]) link(p *pair[K, V]) {
	p.previous, p.next = &r.root, r.root.next
	p.previous.next, p.next.previous = p, p
}

func (r *recent[K, V]) unlink(p *pair[K, V]) {
	p.previous.next, p.next.previous = p.next, p.previous
}

// all calls visit for each entry, the last used first.
func (r *recent[K, V]) all(visit func(key K, value *V)) {
	for p := r.root.next; p != &r.root; p = p.next {
		visit(p.key, &p.value)
	}
}

// withLast appends an item. If there are maxLast, it takes the place of the oldest one.
func withLast[T any](items []T, item T) []T {
	switch len(items) {
	case maxLast:
		copy(items, items[1:])
		items[maxLast-1] = item
		return items
	case maxLast - 1:
		items = append(make([]T, 0, maxLast), items...) // no room that stays unused
	}
	return append(items, item)
}
