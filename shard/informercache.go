// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"example.com/informerstack/informer"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// Options returns o for an informer that lists, watches and stores only objects of the shards that
// this process owns, as by says. Call it for each informer:
//
//	pods := informer.New[*corev1.Pod](client, "pods", shards.Options(shard.ByUID, options))
//
// If by is ByUID or ByNamespace, and the server has the feature gate ShardedListAndWatch, it sends
// only these objects. Otherwise it sends all, and the others are dropped before any transform.
// Status says so.
//
// When the process acquires a shard, the informer lists that shard alone, and handlers get an OnAdd
// for each of its objects. When it releases one, they get an OnDelete for each with a
// store.DeletedFinalStateUnknown: the object is gone from this process, and may be on the server.
// HasSynced is true once the informer holds the shards that the process owned when it started,
// possibly none; Ready of Shards says more.
//
// A WrapListerWatcher of o is inside: it sees the requests to the server. A ListerWatcher around
// the result must pass on the optional interfaces.
func (s *Shards) Options(by By, o informer.Options) informer.Options {
	c := newInformerCache(by, s.count, s.cacheChanged)
	wrapIndexer, wrapListerWatcher := o.WrapIndexer, o.WrapListerWatcher
	o.WrapIndexer = func(inner store.Indexer) store.Indexer {
		wrapped := c.wrapIndexer(inner)
		if wrapIndexer != nil {
			wrapped = wrapIndexer(wrapped)
		}
		return wrapped
	}
	o.WrapListerWatcher = func(
		ctx context.Context, lw reflector.ListerWatcher, example runtime.Object,
	) reflector.ListerWatcher {
		if wrapListerWatcher != nil {
			lw = wrapListerWatcher(ctx, lw, example)
		}
		c.example = example
		forget := s.register(c)
		context.AfterFunc(ctx, forget)
		return newListWatch(lw, c)
	}
	return o
}

// informerCache is an informer's part in the ownership: it decides what the informer lists and
// watches, and knows what it holds.
//
// An object is passed on when the reflector has it. From there it reaches the store through the
// queue, whatever its shard.
//
//	C1  of each held shard, every object was passed on as it was at the reflector's
//	    resourceVersion, or at the version of a later list: see ahead
//	C2  if an object of a shard that is not held may be stored or queued, leftovers is true; no
//	    change of it is passed on
//	C3  a stored shard is held, and every object of it that was passed on when it became held has
//	    been in the store
//	C4  held changes when a request is made or a list is complete, and only for the newest one
type informerCache struct {
	by      By
	count   int
	changed func() // Shards.cacheChanged

	example runtime.Object // set when the informer starts
	store   store.Indexer  // set when it is made

	isPending  atomic.Bool // pending.passed is not empty
	unselected atomic.Bool // the server sends objects that were not selected

	mu           sync.Mutex
	keys         keys
	wanted       shardSet
	moved        chan struct{} // closed when wanted changes
	held         shardSet
	leftovers    bool
	storedShards shardSet
	pending      pending
	ahead        []*ahead            // oldest first
	watch        *selectiveWatch     // the newest; nil after the begin of a list
	pages        map[string]*listing // that are not complete, by continue token
	backoff      wait.Backoff        // of failed lists of new shards
}

// ahead is a list of shards that were acquired while the reflector was at an older version. Until
// the reflector reaches the version of the list, its watch sends changes that the list has already.
type ahead struct {
	shards  shardSet
	version uint64
	listed  map[uint64]struct{} // keys
}

func newInformerCache(by By, count int, changed func()) *informerCache {
	none := newShardSet(count)
	return &informerCache{
		by: by, count: count, changed: changed, keys: newKeys(by, count), wanted: none, held: none,
		storedShards: none, pending: newPending(none), moved: make(chan struct{}),
		pages: map[string]*listing{}, backoff: newBackoff(),
	}
}

func newBackoff() wait.Backoff {
	return wait.Backoff{
		Duration: time.Second, Factor: 2, Jitter: 1, Steps: math.MaxInt32, Cap: 30 * time.Second,
	}
}

// assign implements cache.
func (c *informerCache) assign(owned shardSet) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted = owned
	close(c.moved)
	c.moved = make(chan struct{})
}

// stored implements cache.
func (c *informerCache) stored() shardSet {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.storedShards.and(c.wanted)
}

// shardOf returns the shard of an object that the informer holds or held, by its key.
func (c *informerCache) shardOf(key string) (Shard, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.keys.shard(key)
}

// shardOfObject returns the shard of an object that was received.
func (c *informerCache) shardOfObject(obj any) Shard {
	shard, _ := c.by.shard(obj, c.count) // that of "" if it has no value, as on the server
	return shard
}

// maxRanges bounds the length of a selector to 6 KiB in a URL: some proxies accept 8 KiB.
const maxRanges = 64

// selectable returns the shards to request instead of wanted, and their selector: more than wanted
// if these would be too many ranges.
func (c *informerCache) selectable(wanted shardSet) (requested shardSet, selector string) {
	if !c.by.selectable() {
		return allShards(c.count), ""
	}
	requested = widen(wanted, maxRanges)
	return requested, c.by.selector(requested)
}

// received notes the shard of an object in an answer to a request of some shards.
func (c *informerCache) received(ctx context.Context, shard Shard, requested shardSet) {
	if !requested.has(shard) && c.unselected.CompareAndSwap(false, true) {
		klog.FromContext(ctx).Info("Server does not select by shard: it sends all objects, and "+
			"those of other replicas are dropped here. Enable its feature gate "+
			"ShardedListAndWatch to save the transfer", "by", c.by.field)
	}
}

// filters reports whether objects of other shards are sent to this process and dropped here.
func (c *informerCache) filters() bool { return !c.by.selectable() || c.unselected.Load() }

// covers reports whether the list has an event, or is newer: that of object m, which has a key and a
// shard. held says whether an object of the key was passed on.
func (a *ahead) covers(m metav1.Object, hash uint64, shard Shard, held bool) bool {
	version, ok := number(m.GetResourceVersion())
	if !ok || version > a.version {
		return false
	}
	_, listed := a.listed[hash] // maybe as another object, of another shard, before or after
	return listed || a.shards.has(shard) && !held
}

// reachedLocked forgets the lists that the reflector, at resourceVersion, has caught up with.
func (c *informerCache) reachedLocked(resourceVersion string) {
	if len(c.ahead) == 0 {
		return
	}
	if version, ok := number(resourceVersion); ok {
		c.ahead = slices.DeleteFunc(c.ahead, func(a *ahead) bool { return a.version <= version })
	}
}

// number is a resourceVersion that can be compared, of a state that can be requested.
func number(resourceVersion string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(resourceVersion, 10, 64)
	return n, err == nil && n > 0
}
