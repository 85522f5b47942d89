// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	lru "k8s.io/apimachinery/pkg/util/cache"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// MutationCache lays a program's own writes over a store that has not received them yet: reads
// return the newer of the two states of an object. It forgets old writes, and the oldest if there
// are many; then reads return the store's state.
//
// Source: tools/cache/mutation_cache.go MutationCache
type MutationCache interface {
	// GetByKey finds the object with the key.
	GetByKey(key string) (any, bool, error)
	// ByIndex returns the objects that have indexKey under indexName. It fails without an Indexer.
	ByIndex(indexName, indexKey string) ([]any, error)
	// Mutation lays obj, the result of a write, over the store, unless it has a newer state.
	Mutation(any)
	// OnAddOrUpdate notes that the store has obj. An informer's handler may call it, so that the
	// cache forgets older writes early.
	OnAddOrUpdate(obj runtime.Object)
	// OnDelete notes that obj has left the store. An informer's handler may call it, so that no
	// later Mutation brings back the object.
	OnDelete(obj runtime.Object)

	internal() // methods may be added
}

// ResourceVersionComparator compares the age of objects. The result is negative if lhs is older,
// and 0 if they have the same age.
type ResourceVersionComparator interface {
	CompareResourceVersion(lhs, rhs runtime.Object) int
}

// MutationCacheOptions configures a MutationCache. All are optional.
//
// Source: tools/cache/mutation_cache.go MutationCacheOptions
type MutationCacheOptions struct {
	// Indexer is the index that ByIndex uses.
	Indexer Indexer
	// TTL is how long a write is kept. Default: five minutes.
	TTL time.Duration
	// IncludeAdds returns a write of an object that the store does not hold. An object that was
	// deleted soon after it was written may then be returned for as long as the TTL; OnDelete makes
	// that rare.
	IncludeAdds bool
	// MaxCacheSize is the number of writes that are kept. Default: 100.
	MaxCacheSize int
}

// NewIntegerResourceVersionMutationCacheWithOptions returns a MutationCache over backingCache.
// resourceVersions must be numbers, as those of every API server are; it panics over others.
//
// Source: tools/cache/mutation_cache.go NewIntegerResourceVersionMutationCacheWithOptions
func NewIntegerResourceVersionMutationCacheWithOptions(
	logger klog.Logger, backingCache Store, options MutationCacheOptions,
) MutationCache {
	return &mutationCache{
		logger:      logger,
		backing:     backingCache,
		indexer:     options.Indexer,
		includeAdds: options.IncludeAdds,
		ttl:         cmp.Or(options.TTL, 5*time.Minute),
		writes:      lru.NewLRUExpireCache(cmp.Or(options.MaxCacheSize, 100)),
	}
}

// NewIntegerResourceVersionMutationCache is NewIntegerResourceVersionMutationCacheWithOptions with
// the options as parameters.
//
// Source: tools/cache/mutation_cache.go NewIntegerResourceVersionMutationCache
func NewIntegerResourceVersionMutationCache(
	logger klog.Logger, backingCache Store, indexer Indexer, ttl time.Duration, includeAdds bool,
) MutationCache {
	options := MutationCacheOptions{Indexer: indexer, TTL: ttl, IncludeAdds: includeAdds}
	return NewIntegerResourceVersionMutationCacheWithOptions(logger, backingCache, options)
}

// mutationCache keeps, under each key, the newest known state that the store may not have.
//
//	U1  writes[key] is never replaced by an older state
//	U2  after OnDelete of an object, no write of it (by UID) is kept
type mutationCache struct {
	logger      klog.Logger
	backing     Store
	indexer     Indexer
	includeAdds bool
	ttl         time.Duration

	mu     sync.Mutex
	writes *lru.LRUExpireCache // values are write
}

// write is an object that was written or deleted.
type write struct {
	obj             any // nil: it was deleted
	resourceVersion string
	uid             types.UID
	known           bool // whether obj has a version
}

func newWrite(obj any) write {
	o, ok := obj.(runtime.Object)
	if !ok {
		return write{obj: obj}
	}
	m, err := meta.Accessor(o)
	if err != nil {
		panic(err)
	}
	return write{obj: obj, resourceVersion: m.GetResourceVersion(), uid: m.GetUID(), known: true}
}

// version returns the object's resourceVersion as a number, to compare writes. It panics if the
// resourceVersion is not a number.
func (w write) version() uint64 {
	if w.resourceVersion == "" {
		return 0
	}
	v, err := strconv.ParseUint(w.resourceVersion, 10, 64)
	if err != nil {
		panic(err)
	}
	return v
}

// at returns the write that is kept under key.
func (c *mutationCache) at(key string) (write, bool) {
	value, ok := c.writes.Get(key)
	if !ok {
		return write{}, false
	}
	return value.(write), true
}

// GetByKey implements MutationCache.
func (c *mutationCache) GetByKey(key string) (any, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	stored, exists, err := c.backing.GetByKey(key)
	switch {
	case err != nil:
		return nil, false, err
	case exists:
		return c.newer(key, stored), true, nil
	case !c.includeAdds:
		return nil, false, nil // it may have been created or deleted just now
	}
	w, ok := c.at(key)
	return w.obj, ok && w.obj != nil, nil
}

// newer returns stored, or a newer write. It forgets a write that the store has caught up with.
func (c *mutationCache) newer(key string, stored any) any {
	w, ok := c.at(key)
	if !ok || !w.known {
		return stored
	}
	s := newWrite(stored)
	switch {
	case !s.known:
		return stored
	case s.version() >= w.version():
		c.writes.Remove(key)
		return stored
	case w.obj == nil:
		return stored // it was deleted, and the store will see that too
	}
	return w.obj
}

// ByIndex implements MutationCache.
func (c *mutationCache) ByIndex(indexName, indexKey string) ([]any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.indexer == nil {
		return nil, errors.New("no indexer has been provided to the mutation cache")
	}
	keys, err := c.indexer.IndexKeys(indexName, indexKey)
	if err != nil {
		return nil, err
	}
	var found []any
	stored := map[string]bool{} // not all keys: an object may have left the store since IndexKeys
	for _, key := range keys {
		obj, exists, err := c.indexer.GetByKey(key)
		if err != nil {
			return nil, err
		}
		if exists {
			found = append(found, c.newer(key, obj))
			stored[key] = true
		}
	}
	if c.includeAdds {
		found = append(found, c.addsByIndex(indexName, indexKey, stored)...)
	}
	return found, nil
}

// addsByIndex returns the writes that have indexKey under indexName and were not found in the
// store.
func (c *mutationCache) addsByIndex(indexName, indexKey string, stored map[string]bool) []any {
	var found []any
	indexFunc := c.indexer.GetIndexers()[indexName]
	for _, k := range c.writes.Keys() { // oldest first: reading all of them keeps their order
		key := k.(string)
		w, ok := c.at(key)
		if !ok || stored[key] || w.obj == nil {
			continue
		}
		values, err := indexFunc(w.obj)
		if err != nil {
			c.logger.V(4).Info("Cannot index an object that was written", "key", key, "err", err)
			continue
		}
		if slices.Contains(values, indexKey) {
			found = append(found, w.obj)
		}
	}
	return found
}

// Mutation implements MutationCache.
func (c *mutationCache) Mutation(obj any) {
	key, ok := c.key(obj)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	w := newWrite(obj)
	if kept, ok := c.at(key); ok && kept.known && w.known {
		older, deleted := w.version() < kept.version(), kept.obj == nil
		if older || deleted && (w.version() == kept.version() || w.uid == kept.uid) {
			return
		}
	}
	c.writes.Add(key, w, c.ttl)
}

// OnAddOrUpdate implements MutationCache.
func (c *mutationCache) OnAddOrUpdate(obj runtime.Object) {
	key, ok := c.key(obj)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if kept, ok := c.at(key); ok && kept.known && newWrite(obj).version() >= kept.version() {
		c.writes.Remove(key)
	}
}

// OnDelete implements MutationCache.
func (c *mutationCache) OnDelete(obj runtime.Object) {
	key, ok := c.key(obj)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	deleted := newWrite(obj)
	deleted.obj = nil
	if kept, ok := c.at(key); ok && kept.known &&
		deleted.version() < kept.version() && deleted.uid != kept.uid {
		return // kept is a newer object of that name, which may exist
	}
	c.writes.Add(key, deleted, c.ttl)
}

func (c *mutationCache) key(obj any) (key string, ok bool) {
	key, err := DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		utilruntime.HandleErrorWithLogger(c.logger, err, "An object without a key is not kept")
	}
	return key, err == nil
}

func (c *mutationCache) internal() {}
