// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/sets"
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
	// status must not block, nor call the Shards.
	status() cacheStatus
}

// cacheStatus is what a cache has done so far.
type cacheStatus struct {
	// stored are the shards of the last assign that the cache holds completely. It calls
	// Shards.wakeUp after each change.
	stored   shardSet
	answered bool      // the server has answered a list; this does not become false again
	listed   time.Time // when an object of a list was last received
	filters  bool      // it receives objects of other replicas, and drops them
}

// caches are the informers of this process, and what they are to hold.
type caches struct {
	mu    sync.Mutex
	all   map[cache]struct{}
	made  map[cache]struct{} // of informers that do not run yet
	used  map[string]bool    // "kind=by" of the objects that are shared, see byAnnotation
	owned shardSet           // that were assigned last
}

func newCaches(count int) caches {
	return caches{
		all: map[cache]struct{}{}, made: map[cache]struct{}{}, used: map[string]bool{},
		owned: sets.New[Shard](),
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

// bys returns the value of the byAnnotation of this process.
func (c *caches) bys() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(c.used)), ",")
}

// register adds a cache. It has been assigned the present shards when register returns, and learns
// of all later changes until forget is called.
func (s *Shards) register(c cache) (forget func()) {
	defer s.wakeUp()
	s.caches.mu.Lock()
	defer s.caches.mu.Unlock()
	s.caches.all[c] = struct{}{}
	delete(s.caches.made, c)
	c.assign(s.caches.owned)
	return func() {
		defer s.wakeUp()
		s.caches.mu.Lock()
		defer s.caches.mu.Unlock()
		delete(s.caches.all, c)
	}
}

// assign assigns the shards to every cache, if they have changed.
func (c *caches) assign(owned shardSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if owned.Equal(c.owned) {
		return
	}
	c.owned = owned
	for cache := range c.all {
		cache.assign(owned)
	}
}

// cachesStatus is what all caches have done so far.
type cachesStatus struct {
	stored    shardSet  // the assigned shards that every cache holds completely
	listed    time.Time // when an object of a list was last received
	filtering int       // caches that receive objects of other replicas
	silent    int       // caches that no server has answered yet, of those that run
	made      int       // caches that do not run yet
}

func (c *caches) status() cachesStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := cachesStatus{stored: c.owned, made: len(c.made)}
	for cache := range c.all {
		one := cache.status()
		sum.stored = sum.stored.Intersection(one.stored)
		if one.listed.After(sum.listed) {
			sum.listed = one.listed
		}
		if one.filters {
			sum.filtering++
		}
		if !one.answered {
			sum.silent++
		}
	}
	return sum
}
