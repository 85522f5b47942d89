// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// presenting is the first part of a watch that begins with new shards: it passes on their objects
// as a LIST brings them, and meanwhile the inner watch's events about the other shards, so that
// these do not get old while a list is slow.
//
// The list and the watch are not in one order. Until the list is complete, its resourceVersion is
// not known. But the version of a listed object is, and the object did not change from then to the
// version of the list. So an event about a key that was listed is older than the listed object, and
// dropped, or newer than the list, and passed on; and a listed object is dropped if a newer event
// about its key was passed on, or said that it is in another replica's shard. An event about a key
// of a new shard that was not listed yet waits for the end of the list.
type presenting struct {
	*selectiveWatch
	list      *ahead
	meanwhile *ahead
	waiting   []watch.Event
	newest    map[uint64]uint64 // by key, the newest version that the inner watch has brought
}

// maxWaiting bounds the number of events that wait for the end of a list. A test sets it, to cross
// it soon.
var maxWaiting = 10_000

var (
	errStopped = errors.New("the watch was stopped")
	errWaiting = errors.New("too many changes of new shards while they are listed")
)

// present passes on the new shards' objects. The error is errStopped if nothing more can be sent.
// Otherwise only the other shards are held.
func (w *selectiveWatch) present() error {
	p := &presenting{
		selectiveWatch: w, meanwhile: w.meanwhile, newest: map[uint64]uint64{},
		list: &ahead{shards: w.fresh, listed: map[uint64]uint64{}},
	}
	if w.fresh.empty() {
		return w.cache.presented(w, p.list)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	objects, listed := make(chan runtime.Object), make(chan error, 1)
	go func() { listed <- p.listTo(ctx, objects) }()
	for {
		var err error
		select {
		case obj := <-objects:
			err = p.passListed(obj)
		case e, open := <-w.inner.ResultChan():
			if err = errStopped; open {
				err = p.passMeanwhile(e)
			}
		case err := <-listed:
			if err == nil {
				err = w.cache.presented(w, p.list)
			}
			if err == nil {
				err = p.passWaiting()
			}
			return err
		case <-w.ended:
			err = errStopped
		}
		if err != nil {
			return err
		}
	}
}

// listTo lists the new shards, and sends their objects to a channel.
func (p *presenting) listTo(ctx context.Context, objects chan<- runtime.Object) error {
	c := p.cache
	options := metav1.ListOptions{
		ResourceVersion:      p.from,
		ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
	}
	requested, selector := c.selectable(p.fresh)
	options.ShardSelector = selector
	c.notOlder(&options)
	version, err := p.lw.each(ctx, options, func(obj runtime.Object) error {
		i, err := c.item(obj)
		if want := reflect.TypeOf(c.example); want != nil && reflect.TypeOf(obj) != want {
			err = fmt.Errorf("expected %v, got %T", want, obj) // the reflector would drop it
		}
		if err != nil {
			return fmt.Errorf("understand list item: %w", err)
		}
		c.listedObject()
		c.received(ctx, i.shard, requested)
		if !p.fresh.has(i.shard) {
			return nil
		}
		select {
		case objects <- obj:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return fmt.Errorf("list new shards: %w", err)
	}
	var ok bool
	if p.list.version, ok = number(version); !ok {
		return incomparable(version)
	}
	return nil
}

// incomparable is an error that makes the reflector list everything.
func incomparable(resourceVersion string) error {
	return apierrors.NewResourceExpired(fmt.Sprintf("the shards of this process have changed, "+
		"and resourceVersion %q cannot be compared with others", resourceVersion))
}

// passListed passes on an object of a new shard.
func (p *presenting) passListed(obj runtime.Object) error {
	i, err := p.cache.item(obj)
	if err != nil {
		return err
	}
	version, ok := number(i.version)
	if !ok {
		return incomparable(i.version)
	}
	p.list.listed[i.key] = version
	if version < p.newest[i.key] {
		return nil
	}
	return p.pass(watch.Event{Type: watch.Added, Object: obj}, i)
}

// passMeanwhile passes on an event of the inner watch, or lets it wait.
func (p *presenting) passMeanwhile(e watch.Event) error {
	c := p.cache
	i, err := c.item(e.Object)
	if err != nil || e.Type == watch.Error {
		if !p.send(e) {
			return errStopped
		}
		return nil
	}
	if e.Type != watch.Bookmark {
		c.received(p.ctx, i.shard, p.requested)
		if err := p.judgeMeanwhile(e, i); err != nil {
			return err
		}
	}
	if version, ok := number(i.version); ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		p.meanwhile.version = max(p.meanwhile.version, version)
	}
	return nil
}

func (p *presenting) judgeMeanwhile(e watch.Event, i item) error {
	version, _ := number(i.version)
	listedAt, listed := p.list.listed[i.key]
	newest, passed := p.newest[i.key]
	isNew := p.fresh.has(i.shard)
	switch {
	case listed && version <= listedAt, passed && version <= newest:
		return nil
	case isNew && !listed && !p.cache.isHeld(i):
		if len(p.waiting) == maxWaiting {
			return errWaiting
		}
		p.waiting = append(p.waiting, e)
		return nil
	}
	e.Type = p.cache.judge(p.selectiveWatch, e.Type, i, isNew)
	if e.Type == watch.Bookmark {
		return nil
	}
	p.newest[i.key] = version
	if e.Type == "" { // the object is another replica's now; the list may show when it was not
		return nil
	}
	return p.pass(e, i)
}

// passWaiting passes on the events that have waited for the end of the list, and are newer. A
// server that sends an event twice, or the delete of an object that it has not shown, must not
// leave a change pending that the store never gets.
func (p *presenting) passWaiting() error {
	for _, e := range p.waiting {
		i, err := p.cache.item(e.Object)
		if err != nil {
			return err
		}
		version, _ := number(i.version)
		newest, passed := p.newest[i.key]
		if passed && version <= newest {
			continue
		}
		_, listed := p.list.listed[i.key]
		if e.Type == watch.Deleted && !listed && !passed {
			continue // the queue drops a delete of an object that it does not know
		}
		e.Type = p.cache.judge(p.selectiveWatch, e.Type, i, false)
		if e.Type == "" || e.Type == watch.Bookmark {
			continue
		}
		p.newest[i.key] = version
		if err := p.pass(e, i); err != nil {
			return err
		}
	}
	return nil
}

// pass passes on an event before the bookmark, so that the store's version does not say whether it
// is stored.
func (p *presenting) pass(e watch.Event, i item) error {
	c := p.cache
	noted := c.passing(e.Type, i)
	if !p.send(e) {
		c.notPassed(i, noted)
		return errStopped
	}
	if e.Type == watch.Deleted {
		c.forget(p.selectiveWatch, i)
	}
	return nil
}

// passing notes that an event is passed on without an order. It returns what is pending now.
func (c *informerCache) passing(t watch.EventType, i item) pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t != watch.Deleted {
		c.keys.hold(i.key, i.value)
	}
	c.pending.add(i.key)
	c.isPending.Store(true)
	return c.pending
}

// notPassed takes back what passing has noted. If a list or another watch has begun since then, its
// changes of the key stay pending.
func (c *informerCache) notPassed(i item, noted pending) {
	c.mu.Lock()
	defer c.mu.Unlock()
	noted.done(i.key)
	c.pendingChangedLocked()
}

// isHeld reports whether an object of the key was passed on. With ByNamespace it is unknown.
func (c *informerCache) isHeld(i item) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, held := c.keys.held[i.key]
	return held
}

// presented notes that all objects of a list of new shards were passed on.
func (c *informerCache) presented(w *selectiveWatch, list *ahead) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.watch != w {
		return errStopped
	}
	c.held = c.stayedLocked(w.wanted, w.since)
	c.leftovers = !w.dropped || !c.held.equal(w.wanted)
	if list.version > 0 {
		c.ahead = append(c.ahead, list)
	}
	c.backoff = newBackoff()
	c.pending.shards = c.pending.shards.and(c.held)
	c.pending.complete = true
	c.pendingChangedLocked()
	return nil
}
