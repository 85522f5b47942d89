// SPDX-License-Identifier: Apache-2.0

package adapt

import (
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/informer"
	"example.com/informerstack/store"
)

// CoreEventHandler returns a handler of client-go's types for an informer of this module, in
// package informer or compat/cache. Both interfaces have the same methods, so the handler fits
// without this; but a library that was compiled with client-go would not recognise the tombstones,
// which have another type here. nil stays nil, which an informer reports.
func CoreEventHandler(h cache.ResourceEventHandler) informer.ResourceEventHandler {
	if h == nil {
		return nil
	}
	return handler{h}
}

// EventHandler is the opposite of CoreEventHandler: a handler of package informer or compat/cache
// for an informer of client-go, such as those of generated factories.
func EventHandler(h informer.ResourceEventHandler) cache.ResourceEventHandler {
	if h == nil {
		return nil
	}
	return clientGoHandler{h}
}

type clientGoHandler struct{ informer.ResourceEventHandler }

// OnDelete implements cache.ResourceEventHandler.
func (h clientGoHandler) OnDelete(obj any) {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = store.DeletedFinalStateUnknown(tombstone)
	}
	h.ResourceEventHandler.OnDelete(obj)
}

// handler is a handler of client-go's types, which gets client-go's tombstones.
type handler struct{ cache.ResourceEventHandler }

// OnDelete implements informer.ResourceEventHandler.
func (h handler) OnDelete(obj any) {
	if tombstone, ok := obj.(store.DeletedFinalStateUnknown); ok {
		obj = cache.DeletedFinalStateUnknown(tombstone)
	}
	h.ResourceEventHandler.OnDelete(obj)
}

// Unwrap returns the handler that messages name. It is a handler of functions if h is.
func (h handler) Unwrap() informer.ResourceEventHandler {
	switch h := h.ResourceEventHandler.(type) {
	case cache.ResourceEventHandlerFuncs:
		return informer.ResourceEventHandlerFuncs(h)
	case *cache.ResourceEventHandlerFuncs:
		return informer.ResourceEventHandlerFuncs(*h)
	case cache.ResourceEventHandlerDetailedFuncs:
		return informer.ResourceEventHandlerDetailedFuncs(h)
	case *cache.ResourceEventHandlerDetailedFuncs:
		return informer.ResourceEventHandlerDetailedFuncs(*h)
	case cache.FilteringResourceEventHandler:
		return handler{h.Handler}
	case *cache.FilteringResourceEventHandler:
		return handler{h.Handler}
	}
	return h.ResourceEventHandler
}

// registration is the handle of an added handler. The handles of one handler are equal.
// cache.ShutDownEventHandler waits for its ShutdownChan.
type registration struct {
	informer.ResourceEventHandlerRegistration
}

// HasSyncedChecker implements cache.ResourceEventHandlerRegistration.
func (r registration) HasSyncedChecker() cache.DoneChecker {
	return r.ResourceEventHandlerRegistration.HasSyncedChecker()
}
