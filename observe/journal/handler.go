// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"reflect"
	"strings"
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
	inner    H
	journal  *Journal
	informer string
	called   *handlerName
	oldest   atomic.Pointer[func() time.Duration] // not in called, which the Journal keeps
}

// handlerName is the identity of a handler, without the handler: two handlers may have one name.
type handlerName struct{ name atomic.Pointer[string] }

// NewHandler returns a handler that notes its calls in j and calls inner. informer is the name of
// the informer. Call Named once the handler is registered.
func NewHandler[H EventHandler](j *Journal, informer string, inner H) *Handler[H] {
	return &Handler[H]{inner: inner, journal: j, informer: printable.Short(informer),
		called: &handlerName{}}
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
	defer h.note(kind, nil, obj)()
	h.inner.OnAdd(obj, isInInitialList)
}

// OnUpdate notes an object that changed, or that is delivered again.
func (h *Handler[H]) OnUpdate(oldObj, newObj any) {
	defer h.note(Updated, oldObj, newObj)()
	h.inner.OnUpdate(oldObj, newObj)
}

// OnDelete notes an object that was deleted.
func (h *Handler[H]) OnDelete(obj any) {
	kind := Deleted
	if _, missed := obj.(store.DeletedFinalStateUnknown); missed {
		kind = Tombstone
	}
	defer h.note(kind, nil, obj)()
	h.inner.OnDelete(obj)
}

// note notes a call, and returns a function that notes its end, also after a panic.
func (h *Handler[H]) note(kind Kind, before, obj any) (end func()) {
	if !h.journal.recording() {
		return func() {}
	}
	key, err := store.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return func() {} // it is no object of the API
	}
	call := &Call{
		Informer: h.informer, Kind: kind, ResourceVersion: version(obj),
		Key: strings.Clone(printable.Short(key)), Added: []string{}, called: h.called,
	}
	call.nameLocked()
	_, call.partial = obj.(*metav1.PartialObjectMetadata)
	switch {
	case kind == Updated && same(before, obj):
		call.Kind = Resync
	case kind == Updated && call.ResourceVersion != "" && version(before) == call.ResourceVersion:
		call.Kind = Relist
	case kind == Updated:
		call.Was = version(before)
		call.Fields, call.Managers = h.journal.changes(
			changeID{h.informer, call.Key, call.Was, call.ResourceVersion}, before, obj)
	}
	id := sampleID{h.informer, call.Key}
	h.journal.check(id, notKnown)
	h.journal.unwatch(id)
	if kind != Deleted && kind != Tombstone {
		h.journal.watch(id, obj)
	}
	goroutine := goroutine()
	call.Time = time.Now() // the comparisons are no part of it
	if oldest := h.oldest.Load(); oldest != nil {
		if age := (*oldest)(); age > 0 {
			call.Queued = call.Time.Add(-age)
		}
	}
	h.journal.enter(goroutine, call)
	return func() {
		h.journal.leave(goroutine, call)
		h.journal.check(id, "handler "+call.Handler)
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
	return strings.Clone(printable.Short(object.GetResourceVersion()))
}
