// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"errors"
	"fmt"
)

// ErrPartRemoved is the error of a Part that was removed.
var ErrPartRemoved = errors.New("part of the queue was removed")

// Parts is a DeltaFIFO of a collection in parts, such as namespaces. Each Part has a producer of
// its own, which lists and watches that part alone.
//
//	reflector of a -> Part a --.
//	reflector of b -> Part b ---> Parts -> informer
//
// A list of one part concerns only the keys of that part. So parts come, go and relist one by one,
// while one consumer pops the changes of all. Methods of Parts itself are for keys without a Part.
//
// Each part counts its items. The items of one part are popped in the order in which they were
// queued, so the Progress of a part knows which changes of the part the consumer has, and needs to
// know nothing of other parts.
//
//	Q1  a key belongs to the part that partOf names, and a Part accepts no other key
//	Q2  after Remove has returned, every key of the part that is queued or known ends with
//	    Deleted, and the Part queues nothing any more; a Part that is made later queues behind
//	    that
//	Q3  queued - popped of a Part = items in the queue with a key of that part
type Parts struct {
	*DeltaFIFO
	partOf  func(key string) string
	knownIn func(part string) []string
	parts   map[string]*Part // guarded by handover.mu
}

var (
	_ Queue       = (*Parts)(nil)
	_ DoneChecker = (*Parts)(nil)
)

// NewParts returns an empty queue. partOf returns the part of a key. knownIn returns the keys of
// opts.KnownObjects in a part; it is called under the queue's lock. Neither may call the queue.
func NewParts(
	opts Options, partOf func(key string) string, knownIn func(part string) []string,
) *Parts {
	return &Parts{
		DeltaFIFO: NewDeltaFIFO(opts), partOf: partOf, knownIn: knownIn, parts: map[string]*Part{},
	}
}

// Pop is DeltaFIFO.Pop, and notifies the Progress of the part to which the key belongs.
func (f *Parts) Pop(process PopProcessFunc) (any, error) {
	return f.DeltaFIFO.Pop(func(obj any, isInInitialList bool) error {
		deltas := obj.(Deltas)
		key, err := f.keyOf(deltas)
		p, hasPart := f.parts[f.partOf(key)]
		if err != nil || !hasPart {
			return process(obj, isInInitialList)
		}
		p.popped++
		return p.progress.Process(p.popped, len(deltas), func() error {
			return process(obj, isInInitialList)
		})
	})
}

// Replace is DeltaFIFO.Replace for the keys without a Part, and those of a Part that has not
// listed: of these, exactly those of list exist. It ends the first list, which has everything that
// the parts have queued until then.
func (f *Parts) Replace(list []any, _ string) error {
	all, err := f.prepareAll(list)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range all {
		if part := f.partOf(p.key); f.parts[part] != nil {
			return fmt.Errorf("replace object %q: it belongs to part %q", p.key, part)
		}
	}
	before := len(f.queue)
	f.replaceLocked(all, f.queue, f.known.ListKeys(), func(key string) bool {
		part := f.parts[f.partOf(key)]
		return part == nil || !part.listed
	})
	f.countLocked(before)
	f.handedLocked(f.queued)
	return nil
}

// Resync is DeltaFIFO.Resync, for the objects of all parts.
func (f *Parts) Resync() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := len(f.queue)
	err := f.known.resync(f.keyOf, f.isQueuedLocked, f.appendLocked)
	f.countLocked(before)
	return err
}

// countLocked counts the items that were queued behind the first before items.
func (f *Parts) countLocked(before int) {
	for _, key := range f.queue[before:] {
		if p := f.parts[f.partOf(key)]; p != nil {
			p.queued++
		}
	}
}

// replaceLocked queues that of the keys that belong, exactly the objects of a list exist. queued
// and known have all such keys that belong, and may have others. See DeltaFIFO.Replace for the
// order.
func (f *Parts) replaceLocked(
	all []prepared, queued, known []string, belongs func(key string) bool,
) {
	listed := make(map[string]struct{}, len(all))
	for _, p := range all {
		listed[p.key] = struct{}{}
		f.appendLocked(p.key, Delta{f.listType, p.obj})
	}
	for _, key := range queued {
		if _, isListed := listed[key]; !isListed && belongs(key) {
			f.appendLocked(key, tombstone(key, f.items[key].Newest().Object))
		}
	}
	for _, key := range known {
		if !f.isQueuedLocked(key) && belongs(key) { // listed objects are queued by now
			obj, _ := f.known.object(key)
			f.appendLocked(key, tombstone(key, obj))
		}
	}
}

// Part is the queue as its producer for one part uses it: a reflector's Store. Its methods may be
// called concurrently with those of other parts.
type Part struct {
	parts    *Parts
	name     string
	progress Progress

	// handover.mu guards the fields below.
	listed         bool // Replace has queued a list
	removed        bool
	queued, popped int // items of this part so far: see Q3
}

// Part adds a part with its Progress. Its items are those of the part that are queued already, for
// example the deletes of an earlier Part with this name, and those that it queues. The part must
// not exist.
func (f *Parts) Part(name string, progress Progress) *Part {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.parts[name] != nil {
		panic(fmt.Sprintf("deltafifo: part %q exists", name))
	}
	p := &Part{parts: f, name: name, progress: progress}
	for _, key := range f.queue {
		if f.partOf(key) == name {
			p.queued++
		}
	}
	f.parts[name] = p
	return p
}

// Add queues that obj was created. It fails with a store.KeyError, with the transformer's error, if
// obj belongs to another part, or with ErrPartRemoved. Then nothing is queued.
func (p *Part) Add(obj any) error { return p.put(Added, obj) }

// Update queues that obj was changed. It fails as Add does.
func (p *Part) Update(obj any) error { return p.put(Updated, obj) }

// Delete queues that obj, an object or a tombstone, was deleted. If the key is neither queued nor
// known, the delete was reported before, and is dropped. It fails as Add does.
func (p *Part) Delete(obj any) error { return p.put(Deleted, obj) }

func (p *Part) put(t DeltaType, obj any) error {
	f := p.parts
	ready, err := f.prepare(obj)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := p.checkLocked(ready); err != nil {
		return err
	}
	if t != Deleted || f.isQueuedLocked(ready.key) || f.known.has(ready.key) {
		before := len(f.queue)
		f.appendLocked(ready.key, Delta{t, ready.obj})
		f.countLocked(before)
	}
	p.progress.Queued(p.queued)
	return nil
}

// Replace queues what a LIST of the part returned: each listed object exists, and every other
// object of the part that is queued or known is gone. It fails as Add does.
func (p *Part) Replace(list []any, _ string) error {
	f := p.parts
	all, err := f.prepareAll(list)
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := p.checkLocked(all...); err != nil {
		return err
	}
	p.listed = true
	p.replaceLocked(all)
	p.progress.Queued(p.queued)
	return nil
}

// Resync does nothing: Parts.Resync replays the objects of all parts.
func (p *Part) Resync() error { return nil }

// Remove queues a delete, with a tombstone, of each object of the part, and ends the part: its
// other methods fail from now on. A second Remove is a no-op.
func (p *Part) Remove() {
	f := p.parts
	f.mu.Lock()
	defer f.mu.Unlock()
	if p.removed {
		return
	}
	p.replaceLocked(nil)
	p.removed = true
	delete(f.parts, p.name)
}

func (p *Part) replaceLocked(all []prepared) {
	f := p.parts
	before, queued := len(f.queue), f.queue
	if p.queued == p.popped { // so the first lists of many parts are linear in their sizes
		queued = nil
	}
	f.replaceLocked(all, queued, f.knownIn(p.name), func(key string) bool {
		return f.partOf(key) == p.name
	})
	f.countLocked(before)
}

// checkLocked reports what the part does not accept.
func (p *Part) checkLocked(all ...prepared) error {
	if p.removed {
		return ErrPartRemoved
	}
	for _, ready := range all {
		if part := p.parts.partOf(ready.key); part != p.name {
			return fmt.Errorf("object %q belongs to part %q, not to %q", ready.key, part, p.name)
		}
	}
	return nil
}
