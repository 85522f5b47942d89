// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"iter"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

const (
	// coalesce is how long a watch waits for more shards after the first one that came or went.
	coalesce = 100 * time.Millisecond
	// newestPeriod is how often a cache that wants nothing asks for the newest resourceVersion, or
	// up to a quarter earlier.
	newestPeriod = time.Minute
	// settleCheck is how often the store's version is read until it has everything.
	settleCheck = 10 * time.Millisecond
)

// selectiveWatch is a watch of the shards that its cache wants. It ends when the cache wants
// others; the next one begins with the difference, as a selectionChange.
//
//	begin    opened, and the inner watch with it: events after from
//	present  the objects of new shards, listed now, and the inner watch's events about the others;
//	         then a bookmark
//	follow   the inner watch, without what the lists had already
//
// A watch that begins a streaming list has initial events from the inner watch instead.
type selectiveWatch struct {
	lw      listWatch
	cache   *informerCache
	ctx     context.Context
	cancel  context.CancelFunc
	from    string // the resourceVersion of the request
	timeout time.Duration

	wanted    shardSet
	moved     <-chan struct{} // closed when the cache wants other shards
	requested shardSet
	since     int      // the number of moves when it began
	fresh     shardSet // wanted shards that are to be listed
	changes   bool     // it is a selectionChange
	dropped   bool     // what is not held was removed
	meanwhile *ahead   // what is passed on while the fresh shards are listed
	listing   *listing // of a streaming list, until its initial events end

	inner     watch.Interface // nil if nothing is wanted
	waits     atomic.Bool     // for an event of the inner one
	reselects atomic.Bool     // it has ended because the cache wants other shards

	events chan watch.Event // without a buffer: an event that was sent is handled
	begin  sync.Once
	stop   sync.Once
	ended  chan struct{}
}

// WatchWithContext implements reflector.ListerWatcher.
func (lw listWatch) WatchWithContext(
	ctx context.Context, options metav1.ListOptions,
) (w watch.Interface, err error) {
	s := lw.prepare(ctx, &options)
	defer func() {
		if w == nil || err != nil || isUnreachable(w) {
			s.Stop()
		}
	}()
	if s.changes {
		if err := lw.cache.settle(ctx, options.ResourceVersion); err != nil {
			return nil, err
		}
	}
	switch {
	case !s.wanted.empty():
		inner, err := lw.ListerWatcher.WatchWithContext(ctx, options)
		if err != nil || inner == nil || isUnreachable(inner) {
			return inner, err
		}
		s.inner = inner
	case s.listing != nil:
		if s.from, err = lw.newest(ctx); err != nil {
			return nil, err
		}
	}
	if !s.changes {
		return s, nil
	}
	lw.cache.begin(s)
	return selectionChange{s}, nil
}

func isUnreachable(w watch.Interface) bool {
	return reflect.TypeOf(w) == reflect.TypeOf(watch.NewEmptyWatch())
}

// prepare decides what the next watch selects, and makes options select it.
func (lw listWatch) prepare(ctx context.Context, options *metav1.ListOptions) *selectiveWatch {
	ctx, cancel := context.WithCancel(ctx)
	c := lw.cache
	w := &selectiveWatch{
		lw: lw, cache: c, ctx: ctx, cancel: cancel, timeout: forever,
		events: make(chan watch.Event), ended: make(chan struct{}),
	}
	if options.TimeoutSeconds != nil {
		w.timeout = time.Duration(*options.TimeoutSeconds) * time.Second
	}
	streams := options.SendInitialEvents != nil && *options.SendInitialEvents
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watch = w
	w.wanted, w.moved, w.since = c.wanted, c.moved, c.moves
	w.fresh = c.wanted.minus(c.held)
	w.requested, options.ShardSelector = c.selectable(w.wanted)
	if streams {
		c.notOlderLocked(options)
		w.listing = c.newListingLocked()
		w.listing.requested = w.requested
	} else {
		w.changes = c.leftovers || !c.held.equal(w.wanted)
	}
	w.from = options.ResourceVersion
	if !streams {
		c.reachedLocked(w.from)
	}
	return w
}

// settle waits until the store has everything that was passed on up to resourceVersion.
func (c *informerCache) settle(ctx context.Context, resourceVersion string) error {
	want, ok := number(resourceVersion)
	if !ok {
		return incomparable(resourceVersion)
	}
	for {
		has, _ := number(c.store.LastStoreSyncResourceVersion())
		if has >= want && !c.isPending.Load() {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(settleCheck):
		}
	}
}

// begin notes that w is open, and will pass on objects of new shards.
func (c *informerCache) begin(w *selectiveWatch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watch != w {
		return
	}
	c.leftovers, c.pending = true, newPending(w.fresh)
	if from, ok := number(w.from); ok && !w.fresh.empty() {
		w.meanwhile = &ahead{shards: c.held, version: from}
		c.ahead = append(c.ahead, w.meanwhile)
	}
}

// selectionChange is a selectiveWatch that begins with a change of the selection.
type selectionChange struct{ *selectiveWatch }

// Dropped implements reflector.SelectionChange.
func (w selectionChange) Dropped() iter.Seq[store.DeletedFinalStateUnknown] {
	return func(yield func(store.DeletedFinalStateUnknown) bool) {
		c, count := w.cache, 0
		for _, key := range c.store.ListKeys() {
			if c.holds(key) {
				continue
			}
			obj, _, _ := c.store.GetByKey(key) // a tombstone may have no object
			c.dropping(key)
			if !yield(store.DeletedFinalStateUnknown{Key: key, Obj: obj}) {
				return // the reflector lists again
			}
			count++
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		w.dropped = true
		if count > len(c.keys.held) {
			c.keys.shrink()
		}
	}
}

// holds reports whether an object that is stored is to stay.
func (c *informerCache) holds(key string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, ok := c.keys.heldValue(key)
	return ok && c.held.has(shardOf(value, c.count))
}

// dropping notes that an object is removed, which is not held.
func (c *informerCache) dropping(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	hash := c.keys.hash(key)
	if value, ok := c.keys.heldValue(key); ok {
		c.keys.forget(hash, value)
	}
	c.pending.add(hash)
	c.isPending.Store(true)
}

// ResultChan implements watch.Interface. The first call begins to send.
func (w *selectiveWatch) ResultChan() <-chan watch.Event {
	w.begin.Do(func() { go w.run() })
	return w.events
}

// Stop implements watch.Interface. It does not wait.
func (w *selectiveWatch) Stop() {
	w.stop.Do(func() {
		close(w.ended)
		w.cancel()
		if w.inner != nil {
			w.inner.Stop()
		}
	})
}

// Reselects implements reflector.Reselector.
func (w *selectiveWatch) Reselects() bool { return w.reselects.Load() }

// Quiet implements reflector.Quieter. While the watch sends present state, it is not quiet.
func (w *selectiveWatch) Quiet() (arrived time.Time, largest int, ok bool) {
	if inner, isQuieter := w.inner.(reflector.Quieter); isQuieter {
		if arrived, largest, ok = inner.Quiet(); !ok || len(w.inner.ResultChan()) > 0 {
			return arrived, largest, false
		}
	}
	return arrived, largest, w.waits.Load()
}

// send passes on an event. It returns false if the watch was stopped.
func (w *selectiveWatch) send(e watch.Event) bool {
	select {
	case w.events <- e:
		return true
	case <-w.ended:
		return false
	}
}
