// SPDX-License-Identifier: Apache-2.0

package adapt

import (
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/informer"
	"example.com/informerstack/store"
)

// handler is a handler of client-go's types. The method sets are the same; what differs is the type of a tombstone.
type handler struct{ cache.ResourceEventHandler }

// coreHandler returns h for an informer of ours; nil for nil, of which the informer will say that it is.
func coreHandler(h cache.ResourceEventHandler) informer.ResourceEventHandler {
	if h == nil {
		return nil
	}
	return handler{h}
}

// OnDelete implements informer.ResourceEventHandler.
func (h handler) OnDelete(obj any) {
	if tombstone, ok := obj.(store.DeletedFinalStateUnknown); ok {
		obj = cache.DeletedFinalStateUnknown(tombstone)
	}
	h.ResourceEventHandler.OnDelete(obj)
}

// Unwrap returns what the informer names the handler after in messages: functions, if it is made of functions.
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

func registered(core informer.ResourceEventHandlerRegistration, err error) (cache.ResourceEventHandlerRegistration, error) {
	if err != nil {
		return nil, err
	}
	return registration{core}, nil
}

// HasSyncedChecker implements cache.ResourceEventHandlerRegistration.
func (r registration) HasSyncedChecker() cache.DoneChecker {
	return r.ResourceEventHandlerRegistration.HasSyncedChecker()
}
