// SPDX-License-Identifier: Apache-2.0

// Package shard divides the objects of a controller among its replicas.
package shard

import "sync"

// Shards is this process's part of a group.
type Shards struct {
	count  int
	caches caches
}

// caches are the informers of this process, and what they are to hold.
type caches struct {
	changed chan struct{} // full while a change is to be looked at

	mu    sync.Mutex
	all   map[cache]struct{}
	owned shardSet // that were assigned last
}

func newCaches(count int) caches {
	return caches{
		changed: make(chan struct{}, 1), all: map[cache]struct{}{}, owned: newShardSet(count),
	}
}

// assign tells every cache what it is to hold.
func (c *caches) assign(owned shardSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if owned.equal(c.owned) {
		return
	}
	c.owned = owned
	for cache := range c.all {
		cache.assign(owned)
	}
}

// stored returns the shards that every cache holds completely.
func (c *caches) stored() shardSet {
	c.mu.Lock()
	defer c.mu.Unlock()
	stored := c.owned
	for cache := range c.all {
		stored = stored.and(cache.stored())
	}
	return stored
}
