// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"
)

const forever = time.Duration(math.MaxInt64)

// run sends what the watch has, until it ends.
func (w *selectiveWatch) run() {
	defer utilruntime.HandleCrashWithContext(w.ctx)
	defer close(w.events)
	defer w.Stop()
	var retry time.Duration
	if w.changes {
		err := w.present()
		switch {
		case w.ctx.Err() != nil || errors.Is(err, errStopped):
			return
		case apierrors.IsResourceExpired(err):
			w.fail(err)
			return
		case err != nil:
			retry = w.cache.nextRetry()
			klog.FromContext(w.ctx).Error(err, "New shards cannot be listed, trying again",
				"shards", w.fresh.len(), "wait", retry)
		}
		if !w.endPresent() {
			return
		}
	}
	if w.inner == nil && w.listing != nil {
		if !w.endInitial(w.bookmark(w.from)) {
			return
		}
	}
	w.follow(retry)
}

// fail ends the watch with an error of the server.
func (w *selectiveWatch) fail(err error) {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		w.send(watch.Event{Type: watch.Error, Object: new(status.Status())})
	}
}

// endPresent sends the bookmark that ends the present state, at the version up to which the events
// of the inner watch were passed on meanwhile.
func (w *selectiveWatch) endPresent() bool {
	version := w.from
	if w.meanwhile != nil {
		version = strconv.FormatUint(w.meanwhile.version, 10)
	}
	sent := w.send(w.bookmark(version))
	if sent {
		w.cache.reached(version)
	}
	return sent
}

func (c *informerCache) nextRetry() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.backoff.Step()
}

// follow sends the events of the inner watch. It ends when the cache wants other shards than are
// held, after retry if it failed to list some.
func (w *selectiveWatch) follow(retry time.Duration) {
	var events <-chan watch.Event
	var newest, timeout <-chan time.Time
	if w.inner == nil {
		ticker := time.NewTicker(newestPeriod - rand.N(newestPeriod/4))
		defer ticker.Stop()
		newest, timeout = ticker.C, time.After(w.timeout)
	} else {
		events = w.inner.ResultChan()
	}
	end := time.NewTimer(forever)
	defer end.Stop()
	endAt := time.Now().Add(forever)
	if retry > 0 {
		endAt = time.Now().Add(retry)
		end.Reset(retry)
	}
	for {
		moved := w.moved
		if w.listing != nil { // a stream without its end would be a failure
			moved = nil
		}
		w.waits.Store(true)
		select {
		case e, open := <-events:
			w.waits.Store(false)
			if !open || !w.pass(e) {
				return
			}
		case <-moved:
			w.moved = w.cache.nextMove()
			if at := time.Now().Add(coalesce); at.Before(endAt) {
				endAt = at
				end.Reset(coalesce)
			}
		case <-end.C:
			if !w.cache.isSettled() {
				w.reselects.Store(true)
				return
			}
			endAt = time.Now().Add(forever)
		case <-newest:
			if !w.sendNewest() {
				return
			}
		case <-timeout:
			return
		case <-w.ended:
			return
		}
	}
}

// nextMove returns a channel that is closed when other shards are wanted.
func (c *informerCache) nextMove() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.moved
}

// isSettled reports whether what is wanted is held.
func (c *informerCache) isSettled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held.equal(c.wanted) && !c.leftovers
}

// sendNewest sends a bookmark of the newest resourceVersion, for a watch of nothing.
func (w *selectiveWatch) sendNewest() bool {
	version, err := w.lw.newest(w.ctx)
	if err != nil {
		klog.FromContext(w.ctx).V(2).Info("Newest resourceVersion is unknown", "err", err)
		return w.ctx.Err() == nil
	}
	return w.send(w.bookmark(version))
}

// pass sends an event of the inner watch if it is about what is held. It returns false if the watch
// was stopped.
func (w *selectiveWatch) pass(e watch.Event) bool {
	c := w.cache
	i, err := c.item(e.Object)
	switch {
	case err != nil || e.Type == watch.Error:
		return w.send(e)
	case e.Type == watch.Bookmark:
		return w.passBookmark(e)
	}
	if w.listing != nil {
		w.listing.received(w.ctx, i.shard)
		e.Type = w.listing.judge(e.Type, i)
	} else {
		c.received(w.ctx, i.shard, w.requested)
		e.Type = c.judge(w, e.Type, i, false)
	}
	switch e.Type {
	case "":
		return true
	case watch.Bookmark:
		e = w.bookmark(i.version)
	}
	sent := w.send(e)
	if sent && w.listing == nil {
		c.passed(w, e.Type, i)
	}
	return sent
}

func (w *selectiveWatch) passBookmark(e watch.Event) bool {
	m, err := meta.Accessor(e.Object)
	if err != nil {
		return w.send(e)
	}
	if w.listing != nil && m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true" {
		return w.endInitial(e)
	}
	sent := w.send(e)
	if sent {
		w.cache.reached(m.GetResourceVersion())
	}
	return sent
}

// endInitial sends the bookmark that ends a streaming list.
func (w *selectiveWatch) endInitial(bookmark watch.Event) bool {
	m, err := meta.Accessor(bookmark.Object)
	if err != nil {
		return w.send(bookmark)
	}
	if w.inner == nil {
		m.SetAnnotations(map[string]string{metav1.InitialEventsAnnotationKey: "true"})
	}
	w.listing.version = m.GetResourceVersion()
	if !w.cache.listed(w) {
		return false
	}
	w.listing = nil
	return w.send(bookmark)
}

// listed notes that the reflector has all of a streaming list.
func (c *informerCache) listed(w *selectiveWatch) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watch != w {
		return false
	}
	c.listedLocked(w.listing)
	return true
}

// judge decides on an initial event of a streaming list.
func (l *listing) judge(t watch.EventType, i item) watch.EventType {
	value, has := l.listed[i.key]
	t = judge(t, l.wanted.has(i.shard), has, has && value != i.value)
	switch t {
	case watch.Deleted:
		delete(l.listed, i.key)
	case watch.Added, watch.Modified:
		l.listed[i.key] = i.value
	}
	return t
}

// judge returns the type of the event that is passed on in place of an event of type t, or "" if
// the event is dropped: owned says whether the event's object is one of a shard that is held, held
// whether an object of the key was passed on, and other whether that object had another value.
func judge(t watch.EventType, owned, held, other bool) watch.EventType {
	switch {
	case t == watch.Deleted && held, t != watch.Deleted && owned:
		return t
	case t != watch.Deleted && other: // it has become an object of another replica
		return watch.Deleted
	}
	return ""
}

// judge decides on an event of w, as the function judge does. isNew says that its shard is as good
// as held. An event that was passed on already becomes a bookmark: its version is reached.
func (c *informerCache) judge(
	w *selectiveWatch, t watch.EventType, i item, isNew bool,
) watch.EventType {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watch != w {
		return "" // it was given up
	}
	value, held := c.keys.held[i.key]
	for _, a := range c.ahead {
		if a.covers(i, held) {
			return watch.Bookmark
		}
	}
	owned := isNew || c.held.has(i.shard)
	t = judge(t, owned, held || owned && c.keys.byNamespace, held && value != i.value)
	if t == watch.Added || t == watch.Modified {
		c.keys.hold(i.key, i.value)
	}
	return t
}

// passed notes that an event of w was passed on.
func (c *informerCache) passed(w *selectiveWatch, t watch.EventType, i item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watch != w {
		return
	}
	if t == watch.Deleted {
		c.keys.forget(i.key, i.value)
	}
	c.reachedLocked(i.version)
}

// forget notes that the delete of an object was passed on.
func (c *informerCache) forget(w *selectiveWatch, i item) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watch == w {
		c.keys.forget(i.key, i.value)
	}
}

// reached notes that the reflector is at resourceVersion.
func (c *informerCache) reached(resourceVersion string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reachedLocked(resourceVersion)
}

// bookmark is the event that says that the watch has reached resourceVersion.
func (w *selectiveWatch) bookmark(resourceVersion string) watch.Event {
	var obj runtime.Object
	switch example := w.cache.example.(type) {
	case nil:
		obj = &metav1.PartialObjectMetadata{}
	case *unstructured.Unstructured:
		u := &unstructured.Unstructured{Object: map[string]any{}}
		u.SetGroupVersionKind(example.GroupVersionKind())
		obj = u
	default:
		obj = reflect.New(reflect.TypeOf(example).Elem()).Interface().(runtime.Object)
	}
	if m, err := meta.Accessor(obj); err == nil {
		m.SetResourceVersion(resourceVersion)
	}
	return watch.Event{Type: watch.Bookmark, Object: obj}
}
