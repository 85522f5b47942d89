// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"example.com/informerstack/informer"
	"example.com/informerstack/store"
)

// The Detail of a handler's event.
const (
	Tombstone   = "tombstone"    // an OnDelete with a store.DeletedFinalStateUnknown
	InitialList = "initial list" // an OnAdd of an object that existed before the handler
	Unchanged   = "unchanged"    // an OnUpdate with equal versions
)

// EventHandler traces the calls of a handler, before they are made.
func EventHandler(handler informer.ResourceEventHandler, sink Sink) informer.ResourceEventHandler {
	return eventHandler{handler, sink}
}

type eventHandler struct {
	informer.ResourceEventHandler
	sink Sink
}

// Unwrap returns the handler inside, which messages name.
func (h eventHandler) Unwrap() informer.ResourceEventHandler { return h.ResourceEventHandler }

// OnAdd traces an object that is new to the handler.
func (h eventHandler) OnAdd(obj any, isInInitialList bool) {
	detail := ""
	if isInInitialList {
		detail = InitialList
	}
	h.sink.about(Handler, "OnAdd", obj, detail, nil)
	h.ResourceEventHandler.OnAdd(obj, isInInitialList)
}

// OnUpdate traces an object that changed, or that a resync delivers again.
func (h eventHandler) OnUpdate(oldObj, newObj any) {
	detail := "was @" + version(oldObj)
	if version(oldObj) == version(newObj) {
		detail = Unchanged
	}
	h.sink.about(Handler, "OnUpdate", newObj, detail, nil)
	h.ResourceEventHandler.OnUpdate(oldObj, newObj)
}

// OnDelete traces an object that was deleted.
func (h eventHandler) OnDelete(obj any) {
	detail := ""
	if _, ok := obj.(store.DeletedFinalStateUnknown); ok {
		detail = Tombstone
	}
	h.sink.about(Handler, "OnDelete", obj, detail, nil)
	h.ResourceEventHandler.OnDelete(obj)
}
