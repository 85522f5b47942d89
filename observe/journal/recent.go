// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"container/list"
	"slices"
	"time"
)

// recent is a map of at most maxKeys entries with at most maxBytes, except the one that was put
// last. If there is no room, those are dropped that were used longest ago.
type recent[K comparable, V any] struct {
	entries map[K]*list.Element
	order   *list.List // of pairs, the last used first
	bytes   int
	lost    time.Time // when an entry was dropped last
}

type pair[K comparable, V any] struct {
	key   K
	value V
	bytes int
}

func newRecent[K comparable, V any]() *recent[K, V] {
	return &recent[K, V]{entries: map[K]*list.Element{}, order: list.New()}
}

func (r *recent[K, V]) get(key K) (value V, exists bool) {
	element, exists := r.entries[key]
	if !exists {
		return value, false
	}
	r.order.MoveToFront(element)
	return element.Value.(*pair[K, V]).value, true
}

// put adds or replaces a value of about so many bytes.
func (r *recent[K, V]) put(key K, value V, bytes int) {
	if element, exists := r.entries[key]; exists {
		p := element.Value.(*pair[K, V])
		r.bytes += bytes - p.bytes
		p.value, p.bytes = value, bytes
		r.order.MoveToFront(element)
	} else {
		r.entries[key] = r.order.PushFront(&pair[K, V]{key, value, bytes})
		r.bytes += bytes
	}
	for r.order.Len() > 1 && (r.order.Len() > maxKeys || r.bytes > maxBytes) {
		oldest := r.order.Remove(r.order.Back()).(*pair[K, V])
		delete(r.entries, oldest.key)
		r.bytes -= oldest.bytes
		r.lost = time.Now()
	}
}

// all calls visit for each entry, the last used first.
func (r *recent[K, V]) all(visit func(key K, value V)) {
	for element := r.order.Front(); element != nil; element = element.Next() {
		p := element.Value.(*pair[K, V])
		visit(p.key, p.value)
	}
}

// remember adds a call to those of an object: the last changes, and the last resync. Resyncs have
// no end, and must not evict the change that they repeat.
func remember(calls []*Call, call *Call) []*Call {
	changes := 0
	kept := make([]*Call, 0, len(calls)+1)
	for _, old := range slices.Backward(calls) {
		switch {
		case old.isResync() && call.isResync():
			continue
		case !old.isResync() && !call.isResync() && changes == maxLast-1:
			continue
		case !old.isResync():
			changes++
		}
		kept = append(kept, old)
	}
	slices.Reverse(kept)
	return append(kept, call)
}

// The sizes are rough: what the structs take, and the texts that are their own. A Call that is a
// Cause, too, counts twice.
const (
	callBytes  = 376
	causeBytes = 112
	placeBytes = 512
)

func (c *Call) bytes() int {
	n := callBytes + len(c.Key) + len(c.ResourceVersion) + len(c.Was)
	for _, texts := range [][]string{c.Fields, c.Managers, c.Added} {
		for _, text := range texts {
			n += 16 + len(text)
		}
	}
	return n
}

func bytesOf(calls []*Call) int {
	n := placeBytes
	for _, call := range calls {
		n += call.bytes()
	}
	return n
}

// bytes counts each reconcile with the causes of its own, and with its error.
func (h *history) bytes(p place) int {
	n := placeBytes + len(p.key)
	count := func(causes []Cause) {
		for _, cause := range causes {
			n += causeBytes + len(cause.By) + len(cause.Error)
			if cause.Call != nil {
				n += cause.Call.bytes()
			}
		}
	}
	count(h.causes)
	for _, cause := range []*Cause{h.delayed, h.later} {
		if cause != nil {
			count([]Cause{*cause})
		}
	}
	if h.limited != nil {
		n += causeBytes + len(h.limited.Place) + len(h.limited.By)
	}
	for _, r := range h.last {
		n += callBytes + len(r.Error) + r.requestBytes()
		count(r.Causes)
	}
	if h.current != nil {
		n += h.current.requestBytes()
	}
	return n
}
