// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 the names that client-go deprecates are the ones to serve here

package watch

import (
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/klog/v2"

	"example.com/informerstack/compat/cache"
)

// NewIndexerInformerWatcher runs an informer and presents its notifications as a watch. Stop ends
// both; the channel closes when the informer has ended. A tombstone becomes a Deleted event with
// the last known state.
//
// Source: tools/watch/informerwatcher.go NewIndexerInformerWatcher
func NewIndexerInformerWatcher(lw cache.ListerWatcher,
	objType runtime.Object) (cache.Indexer, cache.Controller, watch.Interface, <-chan struct{}) {
	return NewIndexerInformerWatcherWithLogger(klog.Background(), lw, objType)
}

// NewIndexerInformerWatcherWithLogger is NewIndexerInformerWatcher with a logger.
//
// Source: tools/watch/informerwatcher.go NewIndexerInformerWatcherWithLogger
func NewIndexerInformerWatcherWithLogger(logger klog.Logger, lw cache.ListerWatcher,
	objType runtime.Object) (cache.Indexer, cache.Controller, watch.Interface, <-chan struct{}) {
	out, ended := make(chan watch.Event), make(chan struct{})
	w := watch.NewProxyWatcher(out)
	h := &handover{out: out, ended: ended, wake: make(chan struct{}, 1)}
	indexer, informer := cache.NewIndexerInformer(lw, objType, 0, cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { h.push(watch.Added, obj) },
		UpdateFunc: func(_, obj any) { h.push(watch.Modified, obj) },
		DeleteFunc: func(obj any) {
			if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = tombstone.Obj
			}
			h.push(watch.Deleted, obj)
		},
	}, cache.Indexers{})
	go h.run()
	go func() {
		defer close(ended)
		informer.RunWithContext(klog.NewContext(wait.ContextForChannel(w.StopChan()), logger))
	}()
	return indexer, informer, w, ended
}

// handover stores events until they are read, without bound: the informer must not wait for the
// reader.
//
//	V1  waiting is not empty  =>  wake is full, or run is about to check
type handover struct {
	out   chan<- watch.Event
	ended <-chan struct{}
	wake  chan struct{} // capacity 1

	mu      sync.Mutex
	waiting []watch.Event
}

// push queues an event, unless it is that of a tombstone without a state.
func (h *handover) push(what watch.EventType, obj any) {
	object, ok := obj.(runtime.Object)
	if !ok {
		return
	}
	h.mu.Lock()
	h.waiting = append(h.waiting, watch.Event{Type: what, Object: object})
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// run delivers events until the informer has ended.
func (h *handover) run() {
	for {
		select {
		case <-h.ended:
			return
		case <-h.wake:
		}
		h.mu.Lock()
		events := h.waiting
		h.waiting = nil
		h.mu.Unlock()
		for _, event := range events {
			select {
			case <-h.ended:
				return
			case h.out <- event:
			}
		}
	}
}
