// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"k8s.io/apimachinery/pkg/api/meta"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/reflector"
	"example.com/informerstack/store"
)

// recordedQueue keeps a queueRecord. A change is recorded before it is queued, because the consumer
// could otherwise pop it first. The consumer waits here until the record has an entry, and for the
// time control, so that the entry is in the queue while it is held.
type recordedQueue struct {
	deltafifo.Queue
	record *queueRecord
	hold   holdPop
}

// holdPop returns when the consumer may pop the entry of this key. It reports whether it may pop
// further entries with it.
type holdPop func(key string) (batch bool)

// Add records an added object.
func (q recordedQueue) Add(obj any) error {
	defer q.record.write()()
	key, rv := identity(obj)
	q.record.put(key, deltafifo.Added, rv)
	return q.Queue.Add(obj)
}

// Update records a changed object.
func (q recordedQueue) Update(obj any) error {
	defer q.record.write()()
	key, rv := identity(obj)
	q.record.put(key, deltafifo.Updated, rv)
	return q.Queue.Update(obj)
}

// Delete records a deleted object.
func (q recordedQueue) Delete(obj any) error {
	defer q.record.write()()
	key, rv := identity(obj)
	q.record.delete(key, rv)
	return q.Queue.Delete(obj)
}

// Replace records a list.
func (q recordedQueue) Replace(list []any, resourceVersion string) error {
	defer q.record.write()()
	q.record.replace(list, resourceVersion)
	return q.Queue.Replace(list, resourceVersion)
}

// Resync records a resync.
func (q recordedQueue) Resync() error {
	defer q.record.write()()
	q.record.resync()
	return q.Queue.Resync()
}

// Close closes the queue, and ends the wait of the consumer.
func (q recordedQueue) Close() {
	q.Queue.Close()
	q.record.close()
}

// Pop records the popped deltas, before they are processed.
func (q recordedQueue) Pop(process deltafifo.PopProcessFunc) (any, error) {
	q.next()
	return q.pop(process)
}

// next returns when there is an entry, and the consumer may pop it.
func (q recordedQueue) next() (batch bool) {
	if key, ok := q.record.first(); ok {
		return q.hold(key)
	}
	return true
}

func (q recordedQueue) pop(process deltafifo.PopProcessFunc) (any, error) {
	defer q.record.write()()
	return q.Queue.Pop(q.process(process))
}

func (q recordedQueue) process(process deltafifo.PopProcessFunc) deltafifo.PopProcessFunc {
	return func(obj any, isInInitialList bool) error {
		if deltas, ok := obj.(deltafifo.Deltas); ok {
			q.record.popped(deltas)
		}
		return process(obj, isInInitialList)
	}
}

// recordedBatchQueue is a recordedQueue in front of a RealFIFO.
type recordedBatchQueue struct {
	recordedQueue
	batching    deltafifo.QueueWithBatch
	bookmarking reflector.BookmarkStore
}

// PopBatch records each delta of the batch, before the batch is processed. A delta that was held is
// a batch of its own, so that the time control holds each.
func (q recordedBatchQueue) PopBatch(
	processBatch deltafifo.ProcessBatchFunc, processSingle deltafifo.PopProcessFunc,
) error {
	if !q.next() {
		_, err := q.pop(processSingle)
		return err
	}
	return q.batching.PopBatch(func(deltas []deltafifo.Delta, isInInitialList bool) error {
		for _, delta := range deltas {
			q.record.popped(deltafifo.Deltas{delta})
		}
		return processBatch(deltas, isInInitialList)
	}, q.process(processSingle))
}

// Bookmark records the resourceVersion that the collection has reached.
func (q recordedBatchQueue) Bookmark(resourceVersion string) error {
	q.record.put("", deltafifo.Bookmark, resourceVersion)
	return q.bookmarking.Bookmark(resourceVersion)
}

// identity returns the key of an object or a tombstone, and its resourceVersion. Both are "" for
// the object of a delta that concerns all objects.
func identity(obj any) (key, resourceVersion string) {
	key, err := store.DeletionHandlingMetaNamespaceKeyFunc(obj)
	if err != nil {
		return "", ""
	}
	if tombstone, ok := obj.(store.DeletedFinalStateUnknown); ok {
		obj = tombstone.Obj
	}
	if m, err := meta.Accessor(obj); err == nil {
		resourceVersion = m.GetResourceVersion()
	}
	return key, resourceVersion
}
