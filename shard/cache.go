// SPDX-License-Identifier: Apache-2.0

package shard

// cache is an informer's part in the ownership. Options makes it, and registers it when the
// informer starts to list. A shard is active once every registered cache has stored it.
type cache interface {
	// assign says which shards' objects the cache is to hold from now on. It must not block, nor
	// call the Shards. The set does not change any more. Calls are in order.
	assign(owned shardSet)
	// stored returns the shards whose objects the cache holds completely. It is called with no
	// lock held, by any goroutine. The cache calls Shards.cacheChanged after each change.
	stored() shardSet
}

// register adds a cache. It has been assigned the present shards when register returns, and learns
// of all later changes until forget is called.
func (s *Shards) register(c cache) (forget func()) {
	s.caches.mu.Lock()
	defer s.caches.mu.Unlock()
	s.caches.all[c] = struct{}{}
	c.assign(s.caches.owned)
	s.cacheChanged()
	return func() {
		s.caches.mu.Lock()
		defer s.caches.mu.Unlock()
		delete(s.caches.all, c)
		s.cacheChanged()
	}
}

// cacheChanged says that a cache has stored other shards than before. It does not block.
func (s *Shards) cacheChanged() {
	select {
	case s.caches.changed <- struct{}{}:
	default:
	}
}
