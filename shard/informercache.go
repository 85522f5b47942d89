// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"math"
	"path"
	"reflect"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"example.com/informerstack/informer"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

const zeroBy = "shard: By is zero; use ByUID, ByNamespace, ByOwner or ByFunc"

// Options returns o for an informer that lists, watches and stores only objects of the shards that
// this process owns, as by says. Call it for each informer:
//
//	pods := informer.New[*corev1.Pod](client, "pods", shards.Options(shard.ByUID, options))
//
// If by is ByUID or ByNamespace, and the server has the feature gate ShardedListAndWatch, it sends
// only these objects. Otherwise it sends all, and the others are dropped before any transform:
// Status.Filtering counts these informers.
//
// When shards come or go, the informer lists everything that the process owns, beside the watch,
// and replaces the store's content. Handlers get an OnAdd for each object of a new shard, and an
// OnDelete with a store.DeletedFinalStateUnknown for each object of one that is released: it is
// gone from this process, and may be on the server. They get an OnUpdate without a change for each
// object that stays, unless they have informer.HandlerOptions.SkipUnchanged. Until the list is
// complete, and if it fails, the watch continues for the shards that stay. The informer does not
// use streaming lists.
//
// HasSynced is true once the informer holds the shards that the process owned when it started,
// possibly none; Ready of Shards says more. With a queue that does not report what it holds, see
// WrapQueue of informer.Options, new shards do not become active.
//
// The wrappers of o are inside: its WrapListerWatcher sees the requests to the server. So o may be
// the result of Options of a served.Kinds, for a kind that comes and goes.
//
// Options panics if by is the zero By, and New of a second informer if its Options are the first's.
func (s *Shards) Options(by By, o informer.Options) informer.Options {
	if by.value == nil {
		panic(zeroBy)
	}
	c := newInformerCache(by, s.config.Count, s.wakeUp)
	if o.Reflector.WatchListPageSize == 1 {
		o.Reflector.WatchListPageSize = 2 // a list of one object is a question, see ListStream
	}
	wrapIndexer, wrapListerWatcher := o.WrapIndexer, o.WrapListerWatcher
	o.WrapIndexer = func(inner store.Indexer) store.Indexer {
		if wrapIndexer != nil {
			inner = wrapIndexer(inner)
		}
		s.caches.expect(c)
		return c.wrapIndexer(inner)
	}
	o.WrapListerWatcher = func(
		ctx context.Context, lw reflector.ListerWatcher, example runtime.Object,
	) reflector.ListerWatcher {
		if wrapListerWatcher != nil {
			lw = wrapListerWatcher(ctx, lw, example)
		}
		c.example = example
		if kind := kindOf(example); kind != "" {
			s.caches.uses(kind, by)
		}
		forget := s.register(c)
		context.AfterFunc(ctx, forget)
		return listWatch{lw, c}
	}
	return o
}

// kindOf names the kind of an informer's objects, or returns "" if the example does not say it.
func kindOf(example runtime.Object) string {
	switch example.(type) {
	case nil:
		return ""
	case *unstructured.Unstructured, *metav1.PartialObjectMetadata:
		gvk := example.GetObjectKind().GroupVersionKind()
		return path.Join(gvk.Group, gvk.Version, gvk.Kind)
	}
	t := reflect.TypeOf(example).Elem()
	return t.PkgPath() + "." + t.Name()
}

// informerCache is an informer's part in the ownership: it decides what the informer lists and
// watches, and knows what it holds.
//
// An object is passed on when the reflector has it. From there it reaches the store through the
// queue, whatever its shard.
//
//	C1  of each held shard, every object was passed on as it was at the reflector's
//	    resourceVersion, or at a later one: see ahead
//	C2  an object of a shard that is not held may be stored or queued only if its shard is one of
//	    the leftovers, or of those removed; no change of it but a delete is passed on
//	C3  a stored shard is held, and every object of it that was listed when it became held has
//	    been in the store
//	C4  a shard that was not wanted for a moment is not held, before its objects were removed and
//	    listed again: handlers get an event for each of them, even if they skip updates without a
//	    change
type informerCache struct {
	by      By
	count   int
	changed func() // Shards.wakeUp

	example runtime.Object // set when the informer starts
	store   store.Indexer  // set when it is made

	listed      atomic.Pointer[time.Time] // see cacheStatus
	isUnwritten atomic.Bool               // unwritten is not empty
	unselected  atomic.Bool               // since the last list, others than selected were sent

	mu        sync.Mutex
	keys      keys
	wanted    shardSet
	answered  bool          // see cacheStatus
	moves     int           // number of changes of wanted
	left      []int         // of each shard, the move in which it was last given up
	moved     chan struct{} // closed when wanted changes
	held      shardSet
	leftovers shardSet
	removed   shardSet // leftovers that the last list removes, if the reflector takes it
	stored    shardSet
	fresh     shardSet            // held shards that are stored once nothing is unwritten
	unwritten map[string]struct{} // keys of the last list that the store does not have yet
	ahead     ahead
	watch     *selectiveWatch // the newest; nil after a list of the reflector
	nextList  time.Time       // beside a watch: not before
	paged     *listing        // the newest list of the reflector, if a page of it is missing
	backoff   wait.Backoff    // of failed lists beside a watch
}

// ahead is what was passed on, and is newer than the reflector's resourceVersion: a list was older
// than the watch beside it. The next watch brings these changes again.
type ahead struct {
	upTo   map[string]uint64 // by key, the version up to which its changes were passed on
	newest uint64            // version of all
}

func newInformerCache(by By, count int, changed func()) *informerCache {
	none := sets.New[Shard]()
	return &informerCache{
		by: by, count: count, changed: changed, keys: newKeys(by), wanted: none, held: none,
		leftovers: none, removed: none, stored: none, fresh: none,
		unwritten: map[string]struct{}{}, moved: make(chan struct{}), left: make([]int, count),
		backoff: newBackoff(),
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
	if first := time.Now().Add(coalesce); c.isSettledLocked() && c.nextList.Before(first) {
		c.nextList = first
	}
	c.moves++
	for shard := range c.wanted.Difference(owned) {
		c.left[shard] = c.moves
	}
	c.wanted = owned
	c.leftovers = c.leftovers.Union(c.held.Difference(owned))
	c.held, c.stored = c.held.Intersection(owned), c.stored.Intersection(owned)
	c.fresh = c.fresh.Intersection(owned)
	close(c.moved)
	c.moved = make(chan struct{})
}

// isSettledLocked reports whether what is wanted is held, and nothing else is stored.
func (c *informerCache) isSettledLocked() bool {
	return c.held.Equal(c.wanted) && c.leftovers.Len() == 0
}

// stayedLocked returns the shards of set that were wanted all the time since a move.
func (c *informerCache) stayedLocked(set shardSet, since int) shardSet {
	stayed := set.Clone()
	for shard := range set {
		if c.left[shard] > since {
			stayed.Delete(shard)
		}
	}
	return stayed
}

// status implements cache.
func (c *informerCache) status() cacheStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	status := cacheStatus{
		stored: c.stored, answered: c.answered,
		filters: !c.by.selectable() || c.unselected.Load(),
	}
	if listed := c.listed.Load(); listed != nil {
		status.listed = *listed
	}
	return status
}

// item is an object that was received.
type item struct {
	version string
	key     string
	value   string
	shard   Shard
}

func (c *informerCache) item(obj runtime.Object) (item, error) {
	m, err := meta.Accessor(obj)
	if err != nil {
		return item{}, err
	}
	value, _ := c.by.value(m) // "" without one, as on the server
	return item{
		version: m.GetResourceVersion(), key: store.MetaObjectToName(m).String(), value: value,
		shard: shardOf(value, c.count),
	}, nil
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
	return requested, c.by.selector(requested, c.count)
}

// received notes the shard of an object in an answer to a request of some shards.
func (c *informerCache) received(ctx context.Context, shard Shard, requested shardSet) {
	if !requested.Has(shard) && c.unselected.CompareAndSwap(false, true) {
		klog.FromContext(ctx).Info("Server does not select by shard: it sends all objects, and "+
			"those of other replicas are dropped here. Enable its feature gate "+
			"ShardedListAndWatch to save the transfer", "by", c.by.field)
	}
}

// listedObject notes that a list has brought an object.
func (c *informerCache) listedObject() {
	now := time.Now()
	if last := c.listed.Load(); last == nil || now.Sub(*last) > time.Second {
		c.listed.Store(&now)
	}
}

// number is a resourceVersion that can be compared, of a state that can be requested.
func number(resourceVersion string) (n uint64, ok bool) {
	n, err := strconv.ParseUint(resourceVersion, 10, 64)
	return n, err == nil && n > 0
}
