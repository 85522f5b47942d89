// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"fmt"
	"strings"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/reflector"
)

// DeltaQueue traces what enters and leaves the queue between reflector and store. It keeps what the queue can do besides:
// batches and bookmarks.
func DeltaQueue(queue deltafifo.Queue, sink Sink) deltafifo.Queue {
	traced := deltaQueue{queue, sink}
	batching, batches := queue.(deltafifo.QueueWithBatch)
	bookmarking, bookmarks := queue.(reflector.BookmarkStore)
	if batches && bookmarks {
		return batchQueue{traced, batching, bookmarking}
	}
	return traced
}

// deltaQueue tells what enters before it enters: once it is in the queue, its consumer may be faster.
type deltaQueue struct {
	deltafifo.Queue
	sink Sink
}

// failed tells of an error, and passes it on.
func (q deltaQueue) failed(what string, err error) error {
	if err != nil {
		q.sink.collection(Queue, what, "", "", err)
	}
	return err
}

// Add traces an object that appeared.
func (q deltaQueue) Add(obj any) error {
	q.sink.about(Queue, "Add", obj, "", nil)
	return q.failed("Add", q.Queue.Add(obj))
}

// Update traces an object that changed.
func (q deltaQueue) Update(obj any) error {
	q.sink.about(Queue, "Update", obj, "", nil)
	return q.failed("Update", q.Queue.Update(obj))
}

// Delete traces an object that vanished.
func (q deltaQueue) Delete(obj any) error {
	q.sink.about(Queue, "Delete", obj, "", nil)
	return q.failed("Delete", q.Queue.Delete(obj))
}

// Replace traces a whole list.
func (q deltaQueue) Replace(list []any, resourceVersion string) error {
	q.sink.collection(Queue, "Replace", resourceVersion, fmt.Sprintf("%d items", len(list)), nil)
	return q.failed("Replace", q.Queue.Replace(list, resourceVersion))
}

// Resync traces a replay of what is known.
func (q deltaQueue) Resync() error {
	q.sink.collection(Queue, "Resync", "", "", nil)
	return q.failed("Resync", q.Queue.Resync())
}

// Pop traces what is popped, before it is processed.
func (q deltaQueue) Pop(process deltafifo.PopProcessFunc) (any, error) {
	return q.Queue.Pop(q.process(process))
}

func (q deltaQueue) process(process deltafifo.PopProcessFunc) deltafifo.PopProcessFunc {
	return func(obj any, isInInitialList bool) error {
		if deltas, ok := obj.(deltafifo.Deltas); ok && len(deltas) > 0 {
			q.popped(deltas)
		}
		return process(obj, isInInitialList)
	}
}

func (q deltaQueue) popped(deltas deltafifo.Deltas) {
	types := make([]string, 0, len(deltas))
	for _, delta := range deltas {
		types = append(types, string(delta.Type))
	}
	detail := strings.Join(types, ", ")
	switch newest := deltas.Newest(); info := newest.Object.(type) {
	case deltafifo.ReplacedAllInfo:
		q.sink.collection(Queue, "Pop", info.ResourceVersion, fmt.Sprintf("%s, %d items", detail, len(info.Objects)), nil)
	case deltafifo.BookmarkInfo:
		q.sink.collection(Queue, "Pop", info.ResourceVersion, detail, nil)
	case deltafifo.SyncAllInfo:
		q.sink.collection(Queue, "Pop", "", detail, nil)
	default:
		q.sink.about(Queue, "Pop", newest.Object, detail, nil)
	}
}

type batchQueue struct {
	deltaQueue
	batching    deltafifo.QueueWithBatch
	bookmarking reflector.BookmarkStore
}

// PopBatch traces each delta of the batch, before the batch is processed.
func (q batchQueue) PopBatch(processBatch deltafifo.ProcessBatchFunc, processSingle deltafifo.PopProcessFunc) error {
	return q.batching.PopBatch(func(deltas []deltafifo.Delta, isInInitialList bool) error {
		for _, delta := range deltas {
			q.popped(deltafifo.Deltas{delta})
		}
		return processBatch(deltas, isInInitialList)
	}, q.process(processSingle))
}

// Bookmark traces the resourceVersion that the collection has reached.
func (q batchQueue) Bookmark(resourceVersion string) error {
	q.sink.collection(Queue, "Bookmark", resourceVersion, "", nil)
	return q.failed("Bookmark", q.bookmarking.Bookmark(resourceVersion))
}
