// SPDX-License-Identifier: Apache-2.0

package apitest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// revisionLog is the one history of all resources, as in etcd.
//
//	L1  every write of an object takes the next resourceVersion: versions of all resources are
//	    strictly increasing
//	L2  compacted <= visible <= rv
//	L3  collection.events holds every version newer than compacted, once, ordered by
//	    resourceVersion
//	L4  the state at any N in [compacted, rv] can be read: for each key, the newest version not
//	    newer than N
//
// Its lock also guards the registry and the entries of every collection. Versions are immutable.
type revisionLog struct {
	mu        sync.RWMutex
	rv        int64 // of the last write
	compacted int64 // states before this one are gone
	// state shown to lists and watches that accept an old one; less than rv while a replica lags
	visible     int64
	lagging     bool
	resources   registry
	collections []*collection // one for all versions of a kind, in the order of registration
	moved       chan struct{} // closed when visible moves; nil without waiters
	eventCount  int
	marks       marks
	historyLen  int
	collector   *collector // nil without garbage collection
}

// collection holds the objects of one kind.
type collection struct {
	resource *Resource // the version of the kind that is stored
	byKey    map[string]*entry
	entries  []*entry // sorted by key; those of deleted objects stay until compaction
	events   []event
	dropped  int           // number of events that compaction has removed from the front
	moved    chan struct{} // closed when new events are visible; nil without waiters
}

// entry is one key with its versions.
type entry struct {
	key  string
	head *version // the newest
}

// version is an object at one resourceVersion. If deleted is set, the object is absent from then
// on, and the encoding is the last state with the resourceVersion of the deletion, as a watch sends
// it.
type version struct {
	encoded
	rv              int64
	resource        *Resource // the form in which it is stored
	object          *object
	namespace, name string
	labels          labels.Set
	fields          fields.Set
	deleted         bool
	prev            *version // guarded by the log's lock: compaction cuts it
}

// event is a step of the log: old is nil if the object did not exist before.
type event struct {
	now, old *version
}

func newRevisionLog(historyLen int) *revisionLog {
	return &revisionLog{historyLen: historyLen}
}

// registerLocked serves versions of a kind. If the kind has a collection, they share it and its
// stored version.
func (l *revisionLog) registerLocked(stored *Resource, versions ...*Resource) {
	c := l.kindLocked(stored.GroupResource())
	if c == nil {
		c = &collection{resource: stored, byKey: map[string]*entry{}}
		l.collections = append(l.collections, c)
	}
	kind := &family{objects: c, stored: c.resource, all: versions}
	for _, r := range versions {
		r.family = kind
		if !r.unserved {
			l.resources.all = append(l.resources.all, r)
		}
	}
}

// kindLocked returns the collection of a kind, or nil.
func (l *revisionLog) kindLocked(kind schema.GroupResource) *collection {
	for _, c := range l.collections {
		if c.resource.GroupResource() == kind {
			return c
		}
	}
	return nil
}

// unserveLocked stops serving all versions of c, and ends their open watches. The objects stay.
func (l *revisionLog) unserveLocked(c *collection) {
	l.resources.all = slices.DeleteFunc(l.resources.all, func(r *Resource) bool {
		r.gone = r.gone || r.family.objects == c
		return r.family.objects == c
	})
	c.wakeLocked()
}

// forgetLocked drops the collection of a kind that is not served. Open watches still read it.
func (l *revisionLog) forgetLocked(c *collection) {
	l.collections = slices.DeleteFunc(l.collections, func(other *collection) bool {
		return other == c
	})
	l.eventCount -= len(c.events)
}

// servesLocked reports whether r is served, perhaps as a newer state of its definition has it.
func (l *revisionLog) servesLocked(r *Resource) bool {
	now := l.resources.find(r.Group, r.Version, r.Plural)
	return now != nil && now.family.objects == r.family.objects
}

// collectionLocked returns the collection that holds the objects of r.
func (l *revisionLog) collectionLocked(r *Resource) *collection { return r.family.objects }

func objectKey(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// get returns the newest version of a key, or nil if the object does not exist.
func (c *collection) get(key string) *version {
	if e := c.byKey[key]; e != nil && !e.head.deleted {
		return e.head
	}
	return nil
}

// maxStored is what a real server's storage takes. Built-in kinds are stored there in another form,
// so the size of their JSON says nothing.
const maxStored = 3 << 19

// commitLocked writes obj as the next version of its key.
func (l *revisionLog) commitLocked(c *collection, obj *object) (*version, error) {
	rv := l.rv + 1
	obj.gvk = c.resource.GroupVersionKind()
	enc, err := obj.encode(rv)
	if err != nil {
		return nil, err
	}
	if !c.resource.builtin && len(enc.json) > maxStored {
		return nil, errors.New("etcdserver: request is too large")
	}
	v := &version{
		encoded: enc, rv: rv, resource: c.resource, object: obj,
		namespace: obj.meta.Namespace, name: obj.meta.Name,
		labels: obj.meta.Labels, fields: c.resource.fieldSet(obj),
	}
	l.appendLocked(c, v)
	return v, nil
}

// deleteLocked removes an object; old is its newest version.
func (l *revisionLog) deleteLocked(c *collection, old *version) *version {
	v := &version{
		encoded: old.encoded.at(l.rv + 1), rv: l.rv + 1, resource: old.resource, object: old.object,
		namespace: old.namespace, name: old.name,
		labels: old.labels, fields: old.fields, deleted: true,
	}
	l.appendLocked(c, v)
	return v
}

func (l *revisionLog) appendLocked(c *collection, v *version) {
	key := objectKey(v.namespace, v.name)
	e := c.byKey[key]
	if e == nil {
		e = &entry{key: key}
		c.byKey[key] = e
		at, _ := slices.BinarySearchFunc(c.entries, key,
			func(e *entry, key string) int { return strings.Compare(e.key, key) })
		c.entries = slices.Insert(c.entries, at, e)
	}
	step := event{now: v}
	if e.head != nil && !e.head.deleted {
		step.old = e.head
	}
	v.prev = e.head
	e.head = v
	c.events = append(c.events, step)
	l.eventCount++
	l.rv = v.rv
	if l.collector != nil {
		l.collector.observeLocked(step)
	}
	if !l.lagging {
		l.visible = l.rv
		c.wakeLocked()
		l.wakeLocked()
	}
	l.trimLocked()
}

func (l *revisionLog) wakeLocked() {
	if l.moved != nil {
		close(l.moved)
		l.moved = nil
	}
}

func (c *collection) wakeLocked() {
	if c.moved != nil {
		close(c.moved)
		c.moved = nil
	}
}

// lag freezes the state that stale reads see, or lets it catch up.
func (l *revisionLog) lag(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lagging = on
	if on {
		return
	}
	l.visible = l.rv
	l.wakeLocked()
	for _, c := range l.collections {
		c.wakeLocked()
	}
}

// freshness is the time that a request waits for a resourceVersion that is not written yet.
const freshness = 3 * time.Second

// waitVisible blocks until stale reads see at least rv. After three seconds it gives up as the real
// server does: 504, with the cause ResourceVersionTooLarge.
func (l *revisionLog) waitVisible(ctx context.Context, rv int64) error {
	var timeout <-chan time.Time
	for {
		l.mu.Lock()
		visible := l.visible
		if visible >= rv {
			l.mu.Unlock()
			return nil
		}
		if l.moved == nil {
			l.moved = make(chan struct{})
		}
		moved := l.moved
		l.mu.Unlock()
		if timeout == nil {
			timer := time.NewTimer(freshness)
			defer timer.Stop()
			timeout = timer.C
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		case <-timeout:
			return tooLargeResourceVersion(rv, visible)
		}
	}
}

// tooLargeResourceVersion is the error for a request of a version that does not exist yet.
func tooLargeResourceVersion(rv, current int64) error {
	err := apierrors.NewTimeoutError(
		fmt.Sprintf("Too large resource version: %d, current: %d", rv, current), 1)
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{
		Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
	}}
	return err
}

// stateLocked calls yield for each object that exists at rv, in the order of keys, from the first
// key not less than start that has the prefix. It stops when yield returns false.
func (c *collection) stateLocked(prefix, start string, rv int64, yield func(*version) bool) {
	from := max(prefix, start)
	at, _ := slices.BinarySearchFunc(c.entries, from,
		func(e *entry, key string) int { return cmp.Compare(e.key, key) })
	for _, e := range c.entries[at:] {
		if !strings.HasPrefix(e.key, prefix) {
			return
		}
		v := e.head
		for v != nil && v.rv > rv {
			v = v.prev
		}
		if v != nil && !v.deleted && !yield(v) {
			return
		}
	}
}

// after returns the absolute position of the first event newer than rv.
func (c *collection) afterLocked(rv int64) int {
	i, _ := slices.BinarySearchFunc(c.events, rv+1,
		func(e event, rv int64) int { return cmp.Compare(e.now.rv, rv) })
	return c.dropped + i
}
