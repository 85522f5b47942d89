// SPDX-License-Identifier: Apache-2.0

package journal

import "container/list"

// recent is a map of at most maxKeys entries. A new one takes the place of that which was used
// longest ago.
type recent[K comparable, V any] struct {
	entries map[K]*list.Element
	order   *list.List // of pairs, the last used first
}

type pair[K comparable, V any] struct {
	key   K
	value V
}

func newRecent[K comparable, V any]() *recent[K, V] {
	return &recent[K, V]{map[K]*list.Element{}, list.New()}
}

func (r *recent[K, V]) get(key K) (value V, exists bool) {
	element, exists := r.entries[key]
	if !exists {
		return value, false
	}
	r.order.MoveToFront(element)
	return element.Value.(*pair[K, V]).value, true
}

func (r *recent[K, V]) put(key K, value V) {
	if element, exists := r.entries[key]; exists {
		element.Value.(*pair[K, V]).value = value
		r.order.MoveToFront(element)
		return
	}
	r.entries[key] = r.order.PushFront(&pair[K, V]{key, value})
	if r.order.Len() > maxKeys {
		oldest := r.order.Back()
		delete(r.entries, r.order.Remove(oldest).(*pair[K, V]).key)
	}
}

// all calls visit for each entry, the last used first.
func (r *recent[K, V]) all(visit func(key K, value V)) {
	for element := r.order.Front(); element != nil; element = element.Next() {
		p := element.Value.(*pair[K, V])
		visit(p.key, p.value)
	}
}
