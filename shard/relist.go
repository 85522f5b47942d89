// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"example.com/informerstack/internal/helpers/listwatch"
	"example.com/informerstack/reflector"
)

// settleCheck is how often the store's version is read until it has everything.
const settleCheck = 10 * time.Millisecond

// relist is a list of everything that a cache wants, beside a watch of what it holds.
//
// The two are not in one order: when the list is complete, the watch may have brought changes that
// are newer than the list. They are put into it, so that no object goes back to an older state. The
// next watch begins at the list's version and brings them again: see ahead.
type relist struct {
	*listing
	lw        listWatch
	from      string               // the version that the watch had reached when the list began
	asOf      time.Time            // when the list began
	selected  *reflector.Selection // by the inner watch, which has ended; or nil
	inferred  error                // of a list that was not requested
	items     []runtime.Object
	meanwhile map[string]change // by key, the newest changes that the watch has brought since then
	unordered bool              // one of them has a version that cannot be compared
	newer     ahead             // set by merge
}

// change is a change of an object that was passed on.
type change struct {
	obj     runtime.Object // a copy, because a transform may change it; nil if it is gone
	key     string
	value   string
	version uint64
}

// newRelist begins a list that is not older than resourceVersion.
func (lw listWatch) newRelist(resourceVersion string) *relist {
	c := lw.cache
	c.mu.Lock()
	defer c.mu.Unlock()
	return &relist{
		listing: c.newListingLocked(), lw: lw, from: resourceVersion, asOf: time.Now(),
		meanwhile: map[string]change{},
	}
}

// run lists everything. Then it waits until the store has what was passed on before the list began:
// what is written later of a new shard is from the list.
func (r *relist) run(ctx context.Context) error {
	if r.selected != nil {
		r.take(ctx, r.selected)
		return r.cache.settle(ctx, r.from)
	}
	options := metav1.ListOptions{ResourceVersion: r.from}
	r.choose(&options)
	var tokens listwatch.ContinueTokens
	for {
		m, err := r.lw.page(ctx, options, func(obj runtime.Object) error {
			if r.takes(ctx, obj) {
				r.items = append(r.items, obj)
			}
			return ctx.Err()
		})
		if empty, ok := errors.AsType[*reflector.KnownEmptyError](err); ok {
			r.take(ctx, &reflector.Selection{AsOf: empty.AsOf, Inferred: empty.Why})
			return r.cache.settle(ctx, r.from)
		}
		if err != nil {
			return err
		}
		options.Continue, options.ResourceVersion = r.ends(m), ""
		switch {
		case options.Continue == "":
			return r.cache.settle(ctx, r.from)
		case tokens.Repeat(options.Continue):
			return fmt.Errorf("server repeated the continue token %.64q", options.Continue)
		}
	}
}

// take takes what the inner watch has selected: of all shards, or nothing. If that is known without
// a list, what was passed on reaches no older version than the watch has.
func (r *relist) take(ctx context.Context, s *reflector.Selection) {
	r.requested = allShards(r.cache.count)
	r.asOf, r.version, r.inferred = s.AsOf, s.ResourceVersion, s.Inferred
	if s.Inferred != nil {
		r.version = r.from
	}
	for _, obj := range s.Items {
		if r.takes(ctx, obj) {
			r.items = append(r.items, obj)
		}
	}
}

// settle waits until the store has everything that was passed on up to resourceVersion.
func (c *informerCache) settle(ctx context.Context, resourceVersion string) error {
	want, ok := number(resourceVersion)
	for {
		has, _ := number(c.store.LastStoreSyncResourceVersion())
		if (has >= want || !ok) && !c.isUnwritten.Load() {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the store to reach version %s: %w", resourceVersion,
				ctx.Err())
		case <-time.After(settleCheck):
		}
	}
}

// keep keeps a change that the watch passes on meanwhile. received is the type of the event as the
// server has sent it: an object that is in a new shard now, or another replica's, is passed on as a
// delete.
func (r *relist) keep(e watch.Event, i item, received watch.EventType) {
	version, ok := number(i.version)
	r.unordered = r.unordered || !ok
	c := change{key: i.key, value: i.value, version: version}
	if received != watch.Deleted && r.wanted.Has(i.shard) {
		c.obj = e.Object.DeepCopyObject()
	}
	r.meanwhile[i.key] = c
}

// merge puts the changes into the list that are newer. It returns false if it does not know which
// are.
func (r *relist) merge() bool {
	if len(r.meanwhile) == 0 {
		return true
	}
	version, ok := number(r.version)
	from, known := number(r.from)
	if !ok || !known || r.unordered || version < from { // or the server was restored
		return false
	}
	maps.DeleteFunc(r.meanwhile, func(_ string, c change) bool { return c.version <= version })
	r.items = slices.DeleteFunc(r.items, func(obj runtime.Object) bool {
		i, err := r.cache.item(obj)
		_, changed := r.meanwhile[i.key]
		return err == nil && changed
	})
	r.newer.upTo = map[string]uint64{}
	for _, c := range slices.SortedFunc(maps.Values(r.meanwhile), func(a, b change) int {
		return cmp.Compare(a.version, b.version)
	}) {
		r.newer.newest, r.newer.upTo[c.key] = c.version, c.version
		if c.obj != nil {
			r.items, r.listed[c.key] = append(r.items, c.obj), c.value
		} else {
			delete(r.listed, c.key)
		}
	}
	return true
}

// selectionLocked is what the reflector takes. From now on the cache holds what was listed.
func (r *relist) selectionLocked() *reflector.Selection {
	c := r.cache
	c.listedLocked(r.listing)
	c.ahead, c.backoff = r.newer, newBackoff()
	return &reflector.Selection{
		Items: r.items, ResourceVersion: r.version, AsOf: r.asOf, Inferred: r.inferred,
	}
}
