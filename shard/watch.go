// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"example.com/informerstack/internal/helpers/async"
	"example.com/informerstack/internal/helpers/listwatch"
	"example.com/informerstack/reflector"
)

const (
	// coalesce is how long a list waits for more shards after the first one that came or went, and
	// listPause the least time between two lists: shards that come one by one are listed together.
	coalesce  = 100 * time.Millisecond
	listPause = time.Second
	// newestPeriod is how often a cache that wants nothing asks for the newest resourceVersion, or
	// up to a quarter earlier.
	newestPeriod = time.Minute
)

// selectiveWatch is a watch of the shards that its cache holds. When the cache wants others, it
// lists everything that is wanted, again and again until that succeeds, and passes on the changes
// of what is held meanwhile. Then it ends, and hands the list over as a reflector.Selection.
//
//	follow   changes of what is held
//	list     beside them, a list of what is wanted; its result is kept back
//	end      the list, with the changes that are newer, replaces the content of the store
//
// If the inner watch has ended in order to select something else, as that of package served does,
// its selection is the list.
type selectiveWatch struct {
	lw     listWatch
	cache  *informerCache
	ctx    context.Context
	cancel context.CancelFunc

	timeout   time.Duration   // of a list
	requested shardSet        // of the inner watch
	inner     watch.Interface // nil if nothing is held
	waits     atomic.Bool     // for an event of the inner one

	// The goroutine that runs the watch has these.
	moved   <-chan struct{} // closed when the cache wants other shards
	reached string          // the resourceVersion that was passed on
	list    *relist         // that is under way, or nil
	failed  bool            // a list has
	result  *relist         // for which the watch has ended, or nil

	events chan watch.Event // without a buffer: an event that was sent is handled
	begin  sync.Once
	stop   sync.Once
	ended  chan struct{}
}

// WatchWithContext implements reflector.ListerWatcher.
func (lw listWatch) WatchWithContext(
	ctx context.Context, options metav1.ListOptions,
) (watch.Interface, error) {
	w := lw.prepare(ctx, &options)
	if w.requested.Len() == 0 {
		return w, nil
	}
	inner, err := lw.inner.WatchWithContext(ctx, options)
	if err != nil || inner == nil || listwatch.IsUnreachable(inner) {
		w.Stop()
		return inner, err
	}
	w.inner = inner
	return w, nil
}

// prepare makes the next watch, and makes options select what is held.
func (lw listWatch) prepare(ctx context.Context, options *metav1.ListOptions) *selectiveWatch {
	ctx, cancel := context.WithCancel(ctx)
	c := lw.cache
	w := &selectiveWatch{
		lw: lw, cache: c, ctx: ctx, cancel: cancel, reached: options.ResourceVersion,
		timeout: math.MaxInt64, events: make(chan watch.Event), ended: make(chan struct{}),
	}
	if options.TimeoutSeconds != nil {
		w.timeout = time.Duration(*options.TimeoutSeconds) * time.Second
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.watch = w
	c.removed = sets.New[Shard]() // the reflector has stored the last list
	if w.requested = c.held; c.held.Len() > 0 {
		w.requested, options.ShardSelector = c.selectable(c.held)
	}
	return w
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

// IsUnanswered reports whether no server has granted the watch.
func (w *selectiveWatch) IsUnanswered() bool {
	return w.inner == nil || listwatch.IsUnanswered(w.inner)
}

// Quiet implements reflector.Quieter.
func (w *selectiveWatch) Quiet() (arrived time.Time, largest int, ok bool) {
	if inner, isQuieter := w.inner.(reflector.Quieter); isQuieter {
		if arrived, largest, ok = inner.Quiet(); !ok || len(w.inner.ResultChan()) > 0 {
			return arrived, largest, false
		}
	}
	return arrived, largest, w.waits.Load()
}

// run sends the events of the inner watch, until it ends, or a list of other shards is complete.
func (w *selectiveWatch) run() {
	defer utilruntime.HandleCrashWithContext(w.ctx)
	defer close(w.events)
	defer w.Stop()
	var events <-chan watch.Event
	if w.inner != nil {
		events = w.inner.ResultChan()
	}
	lists := time.NewTimer(w.untilList(events == nil))
	defer lists.Stop()
	var listed <-chan async.Outcome[struct{}]
	for {
		w.waits.Store(true)
		select {
		case e, open := <-events:
			w.waits.Store(false)
			switch {
			case open && w.pass(e):
			case open:
				return
			default:
				selected := reselected(w.inner)
				if selected == nil {
					return
				}
				events = nil
				listed = w.beginList(selected)
			}
		case <-w.moved:
			lists.Reset(w.untilList(events == nil))
		case <-lists.C:
			if w.list == nil {
				listed = w.beginList(nil)
			}
		case answer := <-listed:
			_, err := answer.Unpack()
			if err == nil {
				w.end()
				return
			}
			w.listFailed(err)
			lists.Reset(w.untilList(events == nil))
		case <-w.ended:
			return
		}
	}
}

// untilList returns how long to wait before a list: until the cache wants other shards, unless
// nothing is watched. It notes what is wanted: moved closes when that changes.
func (w *selectiveWatch) untilList(silent bool) time.Duration {
	c := w.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	w.moved = c.moved
	switch {
	case w.list != nil:
	case !c.isSettledLocked(), silent && w.failed:
		return time.Until(c.nextList)
	case silent: // to know the newest version
		return newestPeriod - rand.N(newestPeriod/4)
	}
	return math.MaxInt64
}

// listFailed notes when to list again. A move does not shorten that.
func (w *selectiveWatch) listFailed(err error) {
	c := w.cache
	c.mu.Lock()
	wait := c.backoff.Step()
	c.nextList = time.Now().Add(wait)
	c.mu.Unlock()
	klog.FromContext(w.ctx).Error(err, "Shards cannot be listed, trying again",
		"shards", w.list.wanted.Len(), "wait", wait)
	w.list, w.failed = nil, true
}

// reselected returns what inner, which has ended, has selected instead.
func reselected(inner watch.Interface) *reflector.Selection {
	if reselector, ok := inner.(reflector.Reselector); ok {
		return reselector.Reselected()
	}
	return nil
}

// beginList lists what is wanted, for no longer than the watch may last: the server may be silent.
// If the inner watch has selected something, that is the list, and replaces one that is under way.
func (w *selectiveWatch) beginList(
	selected *reflector.Selection,
) <-chan async.Outcome[struct{}] {
	list := w.lw.newRelist(w.reached)
	list.selected = selected
	w.list = list
	return async.Call(func() (struct{}, error) {
		ctx, cancel := context.WithTimeout(w.ctx, w.timeout)
		defer cancel()
		return struct{}{}, list.run(ctx)
	})
}

// end ends the watch with the list, or with an error that makes the reflector list.
func (w *selectiveWatch) end() {
	if w.list.merge() {
		w.result = w.list
		return
	}
	expired := apierrors.NewResourceExpired("the shards of this process have changed, and " +
		"resourceVersions cannot be compared")
	w.send(watch.Event{Type: watch.Error, Object: &expired.ErrStatus})
}

// Reselected implements reflector.Reselector.
func (w *selectiveWatch) Reselected() *reflector.Selection {
	w.cache.mu.Lock()
	defer w.cache.mu.Unlock()
	result := w.result
	if w.result = nil; result == nil || w.cache.watch != w {
		return nil
	}
	return result.selectionLocked()
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

// pass sends an event of the inner watch if it is about what is held. It returns false if the watch
// was stopped.
func (w *selectiveWatch) pass(e watch.Event) bool {
	i, err := w.cache.item(e.Object)
	if err != nil || e.Type == watch.Error {
		return w.send(e)
	}
	if e.Type != watch.Bookmark {
		w.cache.received(w.ctx, i.shard, w.requested)
		received := e.Type
		if e.Type = w.cache.judge(w, e.Type, i); e.Type == "" {
			return true
		}
		if w.list != nil && e.Type != watch.Bookmark {
			w.list.keep(e, i, received)
		}
	}
	if !w.send(e) {
		return false
	}
	w.reached = i.version
	if e.Type == watch.Deleted {
		w.cache.forget(w, i)
	}
	return true
}

// judge returns the type of the event that is passed on in place of an event of type t, or "" if
// the event is dropped. An event that was passed on already becomes a bookmark: its version is
// reached.
func (c *informerCache) judge(w *selectiveWatch, t watch.EventType, i item) watch.EventType {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watch != w {
		return "" // it was given up
	}
	if version, ok := number(i.version); ok {
		switch {
		case version <= c.ahead.upTo[i.key]:
			return watch.Bookmark
		case version > c.ahead.newest:
			c.ahead = ahead{}
		}
	}
	value, known := c.keys.held[i.key]
	owned := c.held.Has(i.shard)
	switch {
	case t == watch.Deleted && (known || owned && c.keys.byNamespace):
		return t
	case t != watch.Deleted && owned:
		c.keys.hold(i.key, i.value)
		return t
	case t != watch.Deleted && known && value != i.value: // it is another replica's now
		return watch.Deleted
	}
	return ""
}

// forget notes that the delete of an object was passed on.
func (c *informerCache) forget(w *selectiveWatch, i item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watch == w {
		c.keys.forget(i.key, i.value)
	}
}
