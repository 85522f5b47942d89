// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"reflect"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/internal/helpers/printable"
	"example.com/informerstack/store"
)

// EventHandler is a handler of an informer. It is informer.ResourceEventHandler, which this package
// does not import: then client-go's own packages can use it below their REST client.
type EventHandler interface {
	OnAdd(obj any, isInInitialList bool)
	OnUpdate(oldObj, newObj any)
	OnDelete(obj any)
}

// Handler is a handler that notes its calls and then calls another one. H is
// informer.ResourceEventHandler.
type Handler[H EventHandler] struct {
	inner   H
	journal *Journal
	called  *handlerName
	oldest  atomic.Pointer[func() time.Duration] // not in called, which the Journal keeps
}

// NewHandler returns a handler that notes its calls in j and calls inner. informer is the name of
// the informer. Call Named once the handler is registered.
func NewHandler[H EventHandler](j *Journal, informer string, inner H) *Handler[H] {
	return &Handler[H]{inner: inner, journal: j,
		called: &handlerName{informer: printable.Short(informer)}}
}

// Unwrap returns the handler inside, which messages name.
func (h *Handler[H]) Unwrap() H { return h.inner }

// Named sets the name of the handler, that of its registration's Status. Calls that end before have
// no name.
func (h *Handler[H]) Named(name string) {
	name = printable.Short(name)
	h.called.name.Store(&name)
}

// Pending sets how the handler learns when the change was queued that it is called for: oldest
// returns its age in a call, as OldestPending of the registration's Status does. It must not block.
func (h *Handler[H]) Pending(oldest func() time.Duration) { h.oldest.Store(&oldest) }

// OnAdd notes an object that is new to the handler.
func (h *Handler[H]) OnAdd(obj any, isInInitialList bool) {
	kind := Added
	if isInInitialList {
		kind = InitialList
	}
	defer h.end(h.note(kind, nil, obj))
	h.inner.OnAdd(obj, isInInitialList)
}

// OnUpdate notes an object that changed, or that is delivered again.
func (h *Handler[H]) OnUpdate(oldObj, newObj any) {
	defer h.end(h.note(Updated, oldObj, newObj))
	h.inner.OnUpdate(oldObj, newObj)
}

// OnDelete notes an object that was deleted.
func (h *Handler[H]) OnDelete(obj any) {
	kind := Deleted
	if _, missed := obj.(store.DeletedFinalStateUnknown); missed {
		kind = Tombstone
	}
	defer h.end(h.note(kind, nil, obj))
	h.inner.OnDelete(obj)
}

// note notes a call. It returns nil for one that is not noted.
func (h *Handler[H]) note(kind Kind, before, obj any) *running {
	now, recording := h.journal.now()
	if !recording {
		return nil
	}
	key, err := store.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return nil // it is no object of the API
	}
	s := seen{handler: h.called, kind: kind, key: printable.Short(key), before: before, obj: obj,
		version: version(obj)}
	_, s.partial = obj.(*metav1.PartialObjectMetadata)
	if kind == Updated {
		was := version(before)
		switch {
		case same(before, obj):
			s.kind = Resync
		case s.version != "" && was == s.version:
			s.kind = Relist
		default:
			s.was, s.managers = was, managersOf(before, obj)
		}
	}
	changed, compared := h.journal.look(&s, now)
	if compared {
		now = time.Now() // the comparisons are no part of the call
	}
	age := time.Duration(0)
	if oldest := h.oldest.Load(); oldest != nil {
		age = (*oldest)()
	}
	return h.journal.enter(&s, changed, now, age)
}

// end notes the end of a call, also after a panic.
func (h *Handler[H]) end(r *running) {
	if r == nil {
		return
	}
	c := r.call
	if h.journal.leave(r) {
		h.journal.check(sampleID{c.handler.informer, c.key}, "handler "+c.handlerName())
	}
}

// same reports whether two objects are one in memory. Other types than pointers never are.
func same(a, b any) bool {
	return reflect.ValueOf(a).Kind() == reflect.Pointer && a == b
}

func version(obj any) string {
	if tombstone, missed := obj.(store.DeletedFinalStateUnknown); missed {
		obj = tombstone.Obj
	}
	object, err := meta.Accessor(obj)
	if err != nil {
		return ""
	}
	return printable.Short(object.GetResourceVersion())
}
