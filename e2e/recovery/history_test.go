// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"fmt"
	"maps"
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/cache"

	"example.com/informerstack/store"
)

// history is an event handler, for client-go's informers and for ours, that checks the order of the
// notifications about each object:
//
//	H1  an object is added, updated any number of times, then deleted, then perhaps added again
//	H2  the old object of an update is the last delivered object
//	H3  versions do not go back
type history struct {
	mu       sync.Mutex
	present  map[string]uint64 // resourceVersion by name, of the objects that exist
	newest   map[string]uint64 // newest resourceVersion by name, of all objects that ever existed
	breaches []string
}

func newHistory() *history {
	return &history{present: map[string]uint64{}, newest: map[string]uint64{}}
}

func (h *history) OnAdd(obj any, _ bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name, version := identify(obj)
	if _, exists := h.present[name]; exists {
		h.breach("H1: %s was added twice", name)
	}
	h.move(name, version)
	h.present[name] = version
}

func (h *history) OnUpdate(oldObj, newObj any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	name, version := identify(newObj)
	last, exists := h.present[name]
	if !exists {
		h.breach("H1: %s was updated before it was added", name)
	}
	if _, old := identify(oldObj); exists && old != last {
		h.breach("H2: %s was updated from version %d, but %d was delivered last", name, old, last)
	}
	h.move(name, version)
	h.present[name] = version
}

func (h *history) OnDelete(obj any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch tombstone := obj.(type) {
	case store.DeletedFinalStateUnknown:
		obj = tombstone.Obj
	case cache.DeletedFinalStateUnknown:
		obj = tombstone.Obj
	}
	name, version := identify(obj)
	if _, exists := h.present[name]; !exists {
		h.breach("H1: %s was deleted before it was added", name)
	}
	h.move(name, version)
	delete(h.present, name)
}

func (h *history) move(name string, version uint64) {
	if version < h.newest[name] {
		h.breach("H3: %s went back from version %d to %d", name, h.newest[name], version)
	}
	h.newest[name] = version
}

func (h *history) breach(format string, args ...any) {
	if len(h.breaches) < 10 {
		h.breaches = append(h.breaches, fmt.Sprintf(format, args...))
	}
}

// read returns the collection that the notifications add up to, without the heartbeat, and the
// breaches so far.
func (h *history) read() (collection map[string]uint64, breaches []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	collection = maps.Clone(h.present)
	delete(collection, heartbeat)
	return collection, h.breaches
}

// identify returns an object's name and resourceVersion.
func identify(obj any) (name string, version uint64) {
	object, err := meta.Accessor(obj)
	if err != nil {
		panic(err) // informers of ConfigMaps deliver nothing else
	}
	version, err = strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	if err != nil {
		panic(err)
	}
	return object.GetName(), version
}
