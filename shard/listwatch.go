// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"errors"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"example.com/informerstack/internal/helpers/listwatch"
	"example.com/informerstack/reflector"
)

// listWatch lists the objects of the shards that a cache wants, and watches those of the shards
// that it holds.
type listWatch struct {
	inner reflector.ListerWatcher
	cache *informerCache
}

var _ reflector.StreamLister = listWatch{}

// IsWatchListSemanticsUnSupported implements reflector.WatchListRefuser: everything is fetched by
// LIST, as beside a watch.
func (lw listWatch) IsWatchListSemanticsUnSupported() bool { return true }

// ListWithContext is not called: a reflector calls ListStream.
func (lw listWatch) ListWithContext(
	context.Context, metav1.ListOptions,
) (runtime.Object, error) {
	return nil, errors.ErrUnsupported
}

// ListStream lists one page of what is wanted.
func (lw listWatch) ListStream(
	ctx context.Context, options metav1.ListOptions, each func(runtime.Object) error,
) (metav1.ListMeta, error) {
	if listwatch.IsQuestion(options) {
		return lw.page(ctx, options, each)
	}
	l := lw.cache.beginPage(&options)
	m, err := lw.page(ctx, options, func(obj runtime.Object) error {
		if !l.takes(ctx, obj) {
			return nil
		}
		return each(obj)
	})
	if _, isEmpty := errors.AsType[*reflector.KnownEmptyError](err); err == nil || isEmpty {
		m.Continue = lw.cache.endPage(ctx, l, m)
	}
	return m, err
}

// page lists one page of what options select.
func (lw listWatch) page(
	ctx context.Context, options metav1.ListOptions, each func(runtime.Object) error,
) (metav1.ListMeta, error) {
	return reflector.ListPage(ctx, lw.inner, lw.cache.example, options, each)
}

// listing is a list of what a cache wants, of one page or more.
type listing struct {
	cache     *informerCache
	wanted    shardSet
	requested shardSet
	since     int               // the number of moves when it began
	listed    map[string]string // values by key, as in keys.held
	foreign   bool              // it has objects that were not requested
	version   string            // of the first page
	next      string            // the continue token of the next page
	notBefore uint64            // the newest version that was passed on before
}

// newListingLocked begins a list. Shards that were given up, and are wanted again, wait for the
// next one: this one removes their objects, so that the next one brings an event for each: C4. If
// no watch has followed the last list, the reflector may have failed to store that.
func (c *informerCache) newListingLocked() *listing {
	c.leftovers = c.leftovers.Union(c.removed)
	return &listing{
		cache: c, wanted: c.wanted.Difference(c.leftovers), since: c.moves,
		listed: map[string]string{}, notBefore: c.ahead.newest,
	}
}

// choose makes options select what the list does. A list is not older than what is held.
func (l *listing) choose(options *metav1.ListOptions) {
	if l.wanted.Len() == 0 { // an answer needs a version; a limit of one would make it a question
		*options = metav1.ListOptions{Limit: 2, TimeoutSeconds: options.TimeoutSeconds}
		l.requested = allShards(l.cache.count)
		return
	}
	l.requested, options.ShardSelector = l.cache.selectable(l.wanted)
	version, ok := number(options.ResourceVersion) // a next page has no version
	if ok && l.notBefore > version {
		options.ResourceVersion = strconv.FormatUint(l.notBefore, 10)
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan // even with pages
	}
}

// beginPage returns the list to which the page that options request belongs, and makes options
// select what that list does.
func (c *informerCache) beginPage(options *metav1.ListOptions) *listing {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.paged
	if c.paged = nil; l == nil || l.next != options.Continue {
		l = c.newListingLocked()
	}
	l.choose(options)
	return l
}

// takes reports whether obj belongs to the list.
func (l *listing) takes(ctx context.Context, obj runtime.Object) bool {
	i, err := l.cache.item(obj)
	if err != nil {
		return true // the reflector says what is wrong
	}
	l.cache.listedObject()
	l.foreign = l.foreign || !l.requested.Has(i.shard)
	l.cache.received(ctx, i.shard, l.requested)
	if !l.wanted.Has(i.shard) {
		return false
	}
	l.listed[i.key] = i.value
	return true
}

// ends notes that a page was received, and returns its continue token.
func (l *listing) ends(m metav1.ListMeta) (token string) {
	if l.version == "" {
		l.version = m.ResourceVersion
	}
	if l.wanted.Len() == 0 {
		return ""
	}
	return m.Continue
}

// endPage notes that a page was received, and returns its continue token. After the last page, the
// reflector replaces the content of the store, unless ctx is done: then it has given up the list.
func (c *informerCache) endPage(ctx context.Context, l *listing, m metav1.ListMeta) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	l.next = l.ends(m)
	switch {
	case ctx.Err() != nil:
	case l.next != "":
		c.paged = l
	default:
		c.listedLocked(l)
		c.watch = nil // a watch that was stopped may still be at its last event
	}
	return l.next
}

// listedLocked notes that the reflector has all of a list, and replaces the content of the store.
func (c *informerCache) listedLocked(l *listing) {
	c.paged, c.ahead, c.nextList = nil, ahead{}, time.Now().Add(listPause)
	if l.wanted.Len() > 0 {
		c.unselected.Store(l.foreign)
	}
	c.held = c.stayedLocked(l.wanted, l.since)
	c.removed, c.leftovers = c.leftovers.Difference(l.wanted), l.wanted.Difference(c.held)
	c.keys.replace(l.listed)
	c.fresh = c.held.Difference(c.stored)
	clear(c.unwritten)
	for key, value := range l.listed {
		if c.fresh.Has(shardOf(value, c.count)) {
			c.unwritten[key] = struct{}{}
		}
	}
	c.writtenLocked()
	if !c.answered {
		c.answered = true
		c.changed()
	}
}
