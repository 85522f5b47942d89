// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// cache is an informer's part in the ownership. Options makes it, and registers it when the
// informer starts to list. A shard is active once every registered cache has stored it.
type cache interface {
	// assign says which shards' objects the cache is to hold from now on. It must not block, nor
	// call the Shards. The set does not change any more. Calls are in order.
	//
	// A shard that leaves and comes back must be listed again, with an event for each object, even
	// if the cache has not acted on the first call yet: its keys were dropped in between.
	assign(owned shardSet)
	// stored returns the shards of the last assign that the cache holds completely. It must
	// not block, nor call the Shards. The cache calls Shards.cacheChanged after each change.
	stored() shardSet
	// answered reports whether the server has answered a list of the cache. It must not block, nor
	// call the Shards. It does not become false again.
	answered() bool
	// progress returns when the cache has last received an object of a list. It must not block.
	progress() time.Time
	// filters reports whether the cache receives objects of other replicas, and drops them. It must
	// not block.
	filters() bool
}

// caches are the informers of this process, and what they are to hold.
type caches struct {
	mu    sync.Mutex
	all   map[cache]struct{}
	made  map[cache]struct{} // of informers that do not run yet
	used  map[string]bool    // "kind=by" of the objects that are shared, see ByAnnotation
	owned shardSet           // that were assigned last
}

func newCaches(count int) caches {
	return caches{
		all: map[cache]struct{}{}, made: map[cache]struct{}{}, used: map[string]bool{},
		owned: newShardSet(count),
	}
}

// expect notes that a cache was made, which will be registered when its informer starts.
func (c *caches) expect(cache cache) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.made[cache] = struct{}{}
}

// expectNone forgets the caches that were made and are not registered.
func (c *caches) expectNone() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.made)
}

// uses notes by which value the objects of a kind are shared.
func (c *caches) uses(kind string, by By) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.used[kind+"="+by.name] = true
}

// bys returns the value of the ByAnnotation of this process.
func (c *caches) bys() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(c.used)), ",")
}

// silent returns the number of caches that no server has answered yet: of those that run, and of
// those that were made.
func (c *caches) silent() (running, made int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for cache := range c.all {
		if !cache.answered() {
			running++
		}
	}
	return running, len(c.made)
}

// register adds a cache. It has been assigned the present shards when register returns, and learns
// of all later changes until forget is called.
func (s *Shards) register(c cache) (forget func()) {
	defer s.cacheChanged()
	s.caches.mu.Lock()
	defer s.caches.mu.Unlock()
	s.caches.all[c] = struct{}{}
	delete(s.caches.made, c)
	c.assign(s.caches.owned)
	return func() {
		defer s.cacheChanged()
		s.caches.mu.Lock()
		defer s.caches.mu.Unlock()
		delete(s.caches.all, c)
	}
}

// cacheChanged says that a cache has stored other shards than before. It does not block.
func (s *Shards) cacheChanged() { s.wakeUp() }

// assign assigns the shards to every cache, if they have changed.
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

// stored returns the assigned shards that every cache holds completely.
func (c *caches) stored() shardSet {
	c.mu.Lock()
	defer c.mu.Unlock()
	stored := c.owned
	for cache := range c.all {
		stored = stored.and(cache.stored())
	}
	return stored
}

// progress returns when a cache has last received an object of a list.
func (c *caches) progress() (last time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for cache := range c.all {
		if at := cache.progress(); at.After(last) {
			last = at
		}
	}
	return last
}

// filtering returns the number of caches that receive objects of other replicas.
func (c *caches) filtering() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for cache := range c.all {
		if cache.filters() {
			n++
		}
	}
	return n
}
