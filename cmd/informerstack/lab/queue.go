// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"container/list"
	"slices"
	"sync"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/observe/trace"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// WrapQueue returns an informer.Options.WrapQueue, which records the content of the queue and
// traces it. sink is the result of Sink.
func (l *Lab) WrapQueue(sink trace.Sink) func(deltafifo.Queue) deltafifo.Queue {
	return func(queue deltafifo.Queue) deltafifo.Queue {
		record := newQueueRecord(l.known)
		traced := trace.DeltaQueue(recordQueue(queue, record, l.holdPop), sink)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.queue, l.queueRecord = traced, record
		return traced
	}
}

// holdPop is called before the consumer of the queue pops the entry of this key.
func (l *Lab) holdPop(key string) (batch bool) {
	l.faults.pop()
	return !l.gate.pass(trace.Event{Hop: trace.Queue, What: "Pop", Key: key})
}

// queueRecord is what a queue holds, as keys and versions. A queue has no method for this, and its
// lock is held while a change is processed, which the time control may do for minutes.
//
//	Q1  between two calls of the queue, entries are its keys with their deltas (DeltaFIFO), or its
//	    deltas (RealFIFO), in order of arrival; the keys that one Resync adds, and the deletes of
//	    one Replace, have no order among themselves
//	Q2  deltas is the number of all deltas in entries
//	Q3  a DeltaFIFO's key is in byKey  <=>  it is in entries, once
//	Q4  no write to a DeltaFIFO happens between a Pop and the end of its process function: a write
//	    depends on the objects that are known, which that function changes
type queueRecord struct {
	known   func() store.Store
	writing sync.Mutex // Q4; a DeltaFIFO has the same order inside

	mu      sync.Mutex
	inOrder bool
	entries *list.List // of *QueueItem
	byKey   map[string]*list.Element
	deltas  int
	changed sync.Cond // an entry was added, or the queue was closed
	closed  bool
}

func newQueueRecord(known func() store.Store) *queueRecord {
	r := &queueRecord{known: known, entries: list.New(), byKey: map[string]*list.Element{}}
	r.changed.L = &r.mu
	return r
}

// recordQueue returns a queue that keeps record, and calls hold before each Pop.
func recordQueue(queue deltafifo.Queue, record *queueRecord, hold holdPop) deltafifo.Queue {
	recorded := recordedQueue{queue, record, hold}
	batching, batches := queue.(deltafifo.QueueWithBatch)
	bookmarking, bookmarks := queue.(reflector.BookmarkStore)
	record.inOrder = batches && bookmarks
	if record.inOrder {
		return recordedBatchQueue{recorded, batching, bookmarking}
	}
	return recorded
}

// write begins a write, or a Pop, of a DeltaFIFO. The result ends it.
func (r *queueRecord) write() (end func()) {
	if r.inOrder {
		return func() {}
	}
	r.writing.Lock()
	return r.writing.Unlock
}

// first waits until there is an entry, and returns the key of the first one. It returns ok = false
// if the queue is closed.
func (r *queueRecord) first() (key string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.entries.Len() == 0 && !r.closed {
		r.changed.Wait()
	}
	if r.entries.Len() == 0 {
		return "", false
	}
	return r.entries.Front().Value.(*QueueItem).Key, true
}

func (r *queueRecord) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.changed.Broadcast()
}

// put adds a delta. A DeltaFIFO has one entry per key, and merges two deletes in a row.
func (r *queueRecord) put(key string, kind deltafifo.DeltaType, rv string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.putLocked(key, kind, rv)
}

func (r *queueRecord) putLocked(key string, kind deltafifo.DeltaType, rv string) {
	defer r.changed.Broadcast()
	d := QueueDelta{Type: string(kind), RV: rv}
	if r.inOrder {
		r.entries.PushBack(&QueueItem{key, []QueueDelta{d}})
		r.deltas++
		return
	}
	element := r.byKey[key]
	if element == nil {
		element = r.entries.PushBack(&QueueItem{Key: key})
		r.byKey[key] = element
	}
	item := element.Value.(*QueueItem)
	deleted := string(deltafifo.Deleted)
	if n := len(item.Deltas); n > 0 && item.Deltas[n-1].Type == deleted && d.Type == deleted {
		return
	}
	item.Deltas = append(item.Deltas, d)
	r.deltas++
}

// delete adds a delete, which a DeltaFIFO drops if the key is neither queued nor known.
func (r *queueRecord) delete(key, rv string) {
	known := r.knows(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.inOrder || known || r.byKey[key] != nil {
		r.putLocked(key, deltafifo.Deleted, rv)
	}
}

func (r *queueRecord) knows(key string) bool {
	objects := r.known()
	if objects == nil {
		return false
	}
	_, exists, err := objects.GetByKey(key)
	return exists || err != nil
}

// replace adds a list: one delta of a RealFIFO; otherwise the listed objects, and a delete for each
// other object that is queued or known.
func (r *queueRecord) replace(objects []any, rv string) {
	if r.inOrder {
		r.put("", deltafifo.ReplacedAll, rv)
		return
	}
	var known []string
	if s := r.known(); s != nil {
		known = s.ListKeys()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var queued []string
	for e := r.entries.Front(); e != nil; e = e.Next() {
		queued = append(queued, e.Value.(*QueueItem).Key)
	}
	listed := make(map[string]bool, len(objects))
	for _, obj := range objects {
		key, version := identity(obj)
		listed[key] = true
		r.putLocked(key, deltafifo.Replaced, version)
	}
	for _, key := range queued {
		if !listed[key] {
			r.putLocked(key, deltafifo.Deleted, "")
		}
	}
	for _, key := range known {
		if r.byKey[key] == nil {
			r.putLocked(key, deltafifo.Deleted, "")
		}
	}
}

// resync adds a Sync for each known object that is not queued, or one delta of a RealFIFO.
func (r *queueRecord) resync() {
	if r.inOrder {
		r.put("", deltafifo.SyncAll, "")
		return
	}
	objects := r.known()
	if objects == nil {
		return
	}
	all := objects.List()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, obj := range all {
		if key, rv := identity(obj); r.byKey[key] == nil {
			r.putLocked(key, deltafifo.Sync, rv)
		}
	}
}

// popped removes deltas that the consumer has popped together. Deltas that arrived after them stay.
func (r *queueRecord) popped(deltas deltafifo.Deltas) {
	if len(deltas) == 0 {
		return
	}
	key, _ := identity(deltas.Newest().Object)
	r.mu.Lock()
	defer r.mu.Unlock()
	element := r.byKey[key]
	if r.inOrder {
		element = r.entries.Front()
	}
	if element == nil {
		return
	}
	item := element.Value.(*QueueItem)
	n := min(len(deltas), len(item.Deltas))
	r.deltas -= n
	if n < len(item.Deltas) {
		item.Deltas = slices.Clone(item.Deltas[n:])
		r.entries.MoveToBack(element)
		return
	}
	r.entries.Remove(element)
	delete(r.byKey, key)
}

// content returns the numbers of keys and deltas, and the first limit entries. The entry of the
// followed key is among them.
func (r *queueRecord) content(limit int, followed string) (keys, deltas int, items []QueueItem) {
	r.mu.Lock()
	defer r.mu.Unlock()
	keys, deltas, items = r.entries.Len(), r.deltas, []QueueItem{}
	found := false
	for e := r.entries.Front(); e != nil && len(items) < limit; e = e.Next() {
		item := *e.Value.(*QueueItem)
		item.Deltas = slices.Clone(item.Deltas[:min(limit, len(item.Deltas))])
		found = found || item.Key == followed
		items = append(items, item)
	}
	if e := r.byKey[followed]; e != nil && !found && len(items) > 0 {
		item := *e.Value.(*QueueItem)
		item.Deltas = slices.Clone(item.Deltas[:min(limit, len(item.Deltas))])
		items[len(items)-1] = item
	}
	return keys, deltas, items
}
