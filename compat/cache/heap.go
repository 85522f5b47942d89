// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"container/heap"
	"errors"
	"sync"
)

var (
	errHeapClosed = errors.New("heap is closed")
	errNotInHeap  = errors.New("object not found")
)

// LessFunc reports whether the first object is less than the second.
type LessFunc func(any, any) bool

// Heap is a queue that returns the least object first. An object that is added again replaces its
// older state. Every method is safe for concurrent use.
//
//	H1  data.entries[key].at == i  <=>  data.order[i] == data.entries[key]
//	H2  no object is less than that of data.order[(i-1)/2], its parent
//
// Source: tools/cache/heap.go Heap
type Heap struct {
	mu     sync.RWMutex
	cond   sync.Cond // its lock is mu
	closed bool
	data   *heapData
}

// heapData implements heap.Interface. Its laws hold between the calls of package heap.
type heapData struct {
	keyFunc KeyFunc
	less    LessFunc
	entries map[string]*heapEntry
	order   []*heapEntry
}

type heapEntry struct {
	key string
	obj any
	at  int // index in data.order
}

// NewHeap returns an empty heap.
//
// Source: tools/cache/heap.go NewHeap
func NewHeap(keyFn KeyFunc, lessFn LessFunc) *Heap {
	h := &Heap{data: &heapData{keyFunc: keyFn, less: lessFn, entries: map[string]*heapEntry{}}}
	h.cond.L = &h.mu
	return h
}

// Add adds obj, or replaces the object that has its key. It fails once the heap is closed.
func (h *Heap) Add(obj any) error { return h.add(obj, true) }

// Update does the same as Add.
func (h *Heap) Update(obj any) error { return h.add(obj, true) }

// AddIfNotPresent adds obj, unless an object has its key. It fails once the heap is closed.
func (h *Heap) AddIfNotPresent(obj any) error { return h.add(obj, false) }

func (h *Heap) add(obj any, replace bool) error {
	key, err := h.data.key(obj)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errHeapClosed
	}
	h.addLocked(key, obj, replace)
	h.cond.Signal()
	return nil
}

// BulkAdd adds every object of list under one lock. If an object has no key, those before it have
// been added.
func (h *Heap) BulkAdd(list []any) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errHeapClosed
	}
	defer h.cond.Broadcast()
	for _, obj := range list {
		key, err := h.data.key(obj)
		if err != nil {
			return err
		}
		h.addLocked(key, obj, true)
	}
	return nil
}

func (h *Heap) addLocked(key string, obj any, replace bool) {
	entry, present := h.data.entries[key]
	switch {
	case !present:
		entry = &heapEntry{key: key, obj: obj}
		h.data.entries[key] = entry
		heap.Push(h.data, entry)
	case replace:
		entry.obj = obj
		heap.Fix(h.data, entry.at)
	}
}

// Delete removes the object with obj's key. It fails if there is no such object.
func (h *Heap) Delete(obj any) error {
	key, err := h.data.key(obj)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	entry, present := h.data.entries[key]
	if !present {
		return errNotInHeap
	}
	heap.Remove(h.data, entry.at)
	delete(h.data.entries, key)
	return nil
}

// Pop blocks until there is an object, and removes the least. It fails once the heap is closed and
// empty.
func (h *Heap) Pop() (any, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.data.entries) == 0 {
		if h.closed {
			return nil, errHeapClosed
		}
		h.cond.Wait()
	}
	entry := heap.Pop(h.data).(*heapEntry)
	delete(h.data.entries, entry.key)
	return entry.obj, nil
}

// List returns every object, in no order.
func (h *Heap) List() []any {
	h.mu.RLock()
	defer h.mu.RUnlock()
	list := make([]any, 0, len(h.data.entries))
	for _, entry := range h.data.order {
		list = append(list, entry.obj)
	}
	return list
}

// ListKeys returns every key, in no order.
func (h *Heap) ListKeys() []string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	keys := make([]string, 0, len(h.data.entries))
	for key := range h.data.entries {
		keys = append(keys, key)
	}
	return keys
}

// Get finds the object with obj's key.
func (h *Heap) Get(obj any) (item any, exists bool, err error) {
	key, err := h.data.key(obj)
	if err != nil {
		return nil, false, err
	}
	return h.GetByKey(key)
}

// GetByKey finds the object with the key. It never fails.
func (h *Heap) GetByKey(key string) (item any, exists bool, err error) {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if entry, present := h.data.entries[key]; present {
		return entry.obj, true, nil
	}
	return nil, false, nil
}

// Close wakes every blocked Pop. The remaining objects can be popped, but no object can be added.
func (h *Heap) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	h.cond.Broadcast()
}

// IsClosed reports whether Close was called.
func (h *Heap) IsClosed() bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.closed
}

func (d *heapData) key(obj any) (string, error) {
	key, err := d.keyFunc(obj)
	if err != nil {
		return "", KeyError{Obj: obj, Err: err}
	}
	return key, nil
}

// Len implements heap.Interface.
func (d *heapData) Len() int { return len(d.order) }

// Less implements heap.Interface.
func (d *heapData) Less(i, j int) bool { return d.less(d.order[i].obj, d.order[j].obj) }

// Swap implements heap.Interface.
func (d *heapData) Swap(i, j int) {
	d.order[i], d.order[j] = d.order[j], d.order[i]
	d.order[i].at, d.order[j].at = i, j
}

// Push implements heap.Interface.
func (d *heapData) Push(entry any) {
	e := entry.(*heapEntry)
	e.at = len(d.order)
	d.order = append(d.order, e)
}

// Pop implements heap.Interface.
func (d *heapData) Pop() any {
	last := len(d.order) - 1
	entry := d.order[last]
	d.order[last] = nil // else the array keeps it alive
	d.order = d.order[:last]
	return entry
}
