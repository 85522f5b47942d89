// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"fmt"
	"strconv"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/informerstack/reflector"
)

// listWatch lists and watches the objects of the shards that a cache wants.
type listWatch struct {
	reflector.ListerWatcher
	cache *informerCache
}

type streamListWatch struct {
	listWatch
	streamer reflector.StreamLister
}

func newListWatch(inner reflector.ListerWatcher, c *informerCache) reflector.ListerWatcher {
	lw := listWatch{inner, c}
	if streamer, ok := inner.(reflector.StreamLister); ok {
		return streamListWatch{lw, streamer}
	}
	return lw
}

// IsWatchListSemanticsUnSupported implements reflector.WatchListRefuser.
func (lw listWatch) IsWatchListSemanticsUnSupported() bool {
	refuser, ok := lw.ListerWatcher.(reflector.WatchListRefuser)
	return ok && refuser.IsWatchListSemanticsUnSupported()
}

// ListWithContext lists one page of what is wanted.
func (lw listWatch) ListWithContext(
	ctx context.Context, options metav1.ListOptions,
) (runtime.Object, error) {
	l := lw.cache.beginPage(&options)
	list, err := lw.ListerWatcher.ListWithContext(ctx, options)
	if err != nil {
		return list, err
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return list, nil // the reflector says what is wrong
	}
	items, err := meta.ExtractListWithAlloc(list)
	if err != nil {
		return list, nil
	}
	kept := items[:0:0]
	for _, item := range items {
		if l.takes(ctx, item) {
			kept = append(kept, item)
		}
	}
	if len(kept) < len(items) {
		if err := meta.SetList(list, kept); err != nil {
			return nil, fmt.Errorf("drop objects of other shards from %T: %w", list, err)
		}
	}
	m.SetContinue(lw.cache.endPage(ctx, l, m))
	return list, nil
}

// ListStream implements reflector.StreamLister.
func (lw streamListWatch) ListStream(
	ctx context.Context, options metav1.ListOptions, each func(runtime.Object) error,
) (metav1.ListMeta, error) {
	l := lw.cache.beginPage(&options)
	m, err := lw.streamer.ListStream(ctx, options, func(obj runtime.Object) error {
		if !l.takes(ctx, obj) {
			return nil
		}
		return each(obj)
	})
	if err == nil {
		m.Continue = lw.cache.endPage(ctx, l, &m)
	}
	return m, err
}

// each lists what options select, beside the reflector's lists, and calls f with each object.
func (lw listWatch) each(
	ctx context.Context, options metav1.ListOptions, f func(runtime.Object) error,
) (resourceVersion string, err error) {
	for {
		m, err := lw.page(ctx, options, f)
		switch {
		case err != nil:
			return "", err
		case options.Continue == "":
			resourceVersion = m.GetResourceVersion()
		}
		if m.GetContinue() == "" {
			return resourceVersion, nil
		}
		options.ResourceVersion, options.ResourceVersionMatch = "", ""
		options.Continue = m.GetContinue()
	}
}

func (lw listWatch) page(
	ctx context.Context, options metav1.ListOptions, f func(runtime.Object) error,
) (metav1.ListInterface, error) {
	if streamer, ok := lw.ListerWatcher.(reflector.StreamLister); ok {
		m, err := streamer.ListStream(ctx, options, f)
		return &m, err
	}
	list, err := lw.ListerWatcher.ListWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	m, err := meta.ListAccessor(list)
	if err == nil {
		err = meta.EachListItemWithAlloc(list, f)
	}
	return m, err
}

// newest returns the newest resourceVersion of the server, by a LIST of one object.
func (lw listWatch) newest(ctx context.Context) (string, error) {
	m, err := lw.page(ctx, metav1.ListOptions{Limit: 1}, func(runtime.Object) error { return nil })
	if err != nil {
		return "", err
	}
	return m.GetResourceVersion(), nil
}

// listing is a list of the reflector: pages, or a stream.
type listing struct {
	cache     *informerCache
	wanted    shardSet
	requested shardSet
	since     int               // the number of moves when it began
	listed    map[uint64]string // values by key, as in keys.held
	foreign   bool              // it has objects that were not requested
	version   string            // of the first page
	next      string            // the continue token of the next page
	// question is true for a list that only asks for the newest resourceVersion: see recency of
	// package reflector. It does not change what the reflector has, and has one page.
	question bool
}

// beginPage returns the list to which the page that options request belongs, and makes options
// select what that list does.
func (c *informerCache) beginPage(options *metav1.ListOptions) *listing {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.paged
	if l != nil && l.next == options.Continue {
		c.paged = nil
	} else {
		l = c.newListingLocked()
		l.question = options.Limit == 1 && options.ResourceVersion == ""
		c.notOlderLocked(options)
	}
	if l.wanted.empty() { // an answer needs a version
		*options = metav1.ListOptions{Limit: 1, TimeoutSeconds: options.TimeoutSeconds}
		l.requested = allShards(c.count)
		return l
	}
	l.requested, options.ShardSelector = c.selectable(l.wanted)
	return l
}

func (c *informerCache) newListingLocked() *listing {
	return &listing{cache: c, wanted: c.wanted, since: c.moves, listed: map[uint64]string{}}
}

func (c *informerCache) notOlder(options *metav1.ListOptions) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notOlderLocked(options)
}

// notOlderLocked makes a list as new as the objects that are held. Some may be newer than the
// reflector's resourceVersion.
func (c *informerCache) notOlderLocked(options *metav1.ListOptions) {
	version, ok := number(options.ResourceVersion) // a next page has no version
	for _, a := range c.ahead {
		if ok && a.version > version {
			version = a.version
			options.ResourceVersion = strconv.FormatUint(version, 10)
		}
	}
}

// takes reports whether obj belongs to the list.
func (l *listing) takes(ctx context.Context, obj runtime.Object) bool {
	i, err := l.cache.item(obj)
	if err != nil {
		return true // the reflector says what is wrong
	}
	l.received(ctx, i.shard)
	if !l.wanted.has(i.shard) {
		return false
	}
	l.listed[i.key] = i.value
	return true
}

// received notes the shard of an object that was sent.
func (l *listing) received(ctx context.Context, shard Shard) {
	l.cache.listedObject()
	l.foreign = l.foreign || !l.requested.has(shard)
	l.cache.received(ctx, shard, l.requested)
}

// endPage notes that a page was received, and returns its continue token. After the last page, the
// reflector replaces the content of the store, unless ctx is done: then it has given up the list.
func (c *informerCache) endPage(ctx context.Context, l *listing, m metav1.ListInterface) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.version == "" {
		l.version = m.GetResourceVersion()
	}
	token := m.GetContinue()
	if l.wanted.empty() {
		token = ""
	}
	switch {
	case ctx.Err() != nil, l.question:
	case token != "":
		l.next, c.paged = token, l
	default:
		c.listedLocked(l)
		c.watch = nil // a watch that was stopped may still be at its last event
	}
	return token
}

// listedLocked notes that the reflector has all of a list, and replaces the content of the store.
func (c *informerCache) listedLocked(l *listing) {
	c.paged, c.ahead = nil, nil
	c.unselected.Store(l.foreign)
	c.held = c.stayedLocked(l.wanted, l.since)
	c.leftovers = !c.held.equal(l.wanted)
	c.storedShards = c.storedShards.and(c.held)
	c.keys.replace(l.listed)
	fresh := c.held.minus(c.storedShards)
	c.pending = newPending(fresh)
	c.pending.version, c.pending.complete = l.version, true
	for key, value := range l.listed {
		if c.leftovers || fresh.has(shardOf(value, c.count)) {
			c.pending.add(key)
		}
	}
	c.pendingChangedLocked()
	if c.hasAnswer.CompareAndSwap(false, true) {
		c.changed()
	}
}
