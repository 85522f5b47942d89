// SPDX-License-Identifier: Apache-2.0

// Package boundedmap remembers something about keys that wait for a reconcile. Some of them wait
// for ever, because their object was deleted or given up.
//
//	handler -> [boundedmap] -> reconcile
//
// Read boundedmap.go; then go test ./internal/helpers/boundedmap. No goroutines, no locks.
package boundedmap

import (
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// StaleAfter is longer than the longest backoff of the default limiter. A key that was put before,
// and not since, may be deleted or given up: it makes room for another.
const StaleAfter = 20 * time.Minute

// Map is a map with at most maxLen keys. It is not safe for concurrent use.
type Map[K comparable, V any] struct {
	maxLen  int
	entries *simplelru.LRU[K, entry[V]] // in the order of the last Put
}

type entry[V any] struct {
	value V
	put   time.Time
}

// New returns an empty Map. maxLen is positive.
func New[K comparable, V any](maxLen int) *Map[K, V] {
	entries, err := simplelru.NewLRU[K, entry[V]](maxLen, nil)
	if err != nil {
		panic(err) // maxLen is not positive
	}
	return &Map[K, V]{maxLen, entries}
}

// Put sets the value of key. If m is full and key is new, the key that was not put for longest is
// dropped if it is stale; otherwise Put is a no-op.
func (m *Map[K, V]) Put(key K, value V) {
	now := time.Now()
	if m.entries.Len() >= m.maxLen && !m.entries.Contains(key) {
		_, oldest, _ := m.entries.GetOldest()
		if now.Sub(oldest.put) < StaleAfter {
			return
		}
	}
	m.entries.Add(key, entry[V]{value, now})
}

// Get returns the value of key. If there is none, it returns the zero value and false.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	e, ok := m.entries.Peek(key)
	return e.value, ok
}

// Delete removes key.
func (m *Map[K, V]) Delete(key K) { m.entries.Remove(key) }

// Len returns the number of keys.
func (m *Map[K, V]) Len() int { return m.entries.Len() }
