// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"strings"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/reflector"
)

// DeltaQueue traces the changes that enter and leave the queue between reflector and store. The
// result supports batches and bookmarks if the queue does.
func DeltaQueue(queue deltafifo.Queue, sink Sink) deltafifo.Queue {
	traced := deltaQueue{queue, sink}
	batching, batches := queue.(deltafifo.QueueWithBatch)
	bookmarking, bookmarks := queue.(reflector.BookmarkStore)
	if batches && bookmarks {
		return batchQueue{traced, batching, bookmarking}
	}
	return traced
}

// deltaQueue traces a change before it enters the queue, because the consumer could otherwise trace
// its Pop first.
type deltaQueue struct {
	deltafifo.Queue
	sink Sink
}

// failed traces an error, and returns it.
func (q deltaQueue) failed(what string, err error) error {
	if err != nil {
		q.sink.collection(Queue, what, "", "", err)
	}
	return err
}

// Add traces a new object.
func (q deltaQueue) Add(obj any) error {
	q.sink.about(Queue, "Add", obj, "", nil)
	return q.failed("Add", q.Queue.Add(obj))
}

// Update traces a changed object.
func (q deltaQueue) Update(obj any) error {
	q.sink.about(Queue, "Update", obj, "", nil)
	return q.failed("Update", q.Queue.Update(obj))
}

// Delete traces a deleted object.
func (q deltaQueue) Delete(obj any) error {
	q.sink.about(Queue, "Delete", obj, "", nil)
	return q.failed("Delete", q.Queue.Delete(obj))
}

// Replace traces a list as a whole.
func (q deltaQueue) Replace(list []any, resourceVersion string) error {
	q.sink.collection(Queue, "Replace", resourceVersion, items(len(list)), nil)
	return q.failed("Replace", q.Queue.Replace(list, resourceVersion))
}

// Resync traces a resync.
func (q deltaQueue) Resync() error {
	q.sink.collection(Queue, "Resync", "", "", nil)
	return q.failed("Resync", q.Queue.Resync())
}

// Pop traces the popped deltas, before they are processed.
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
		detail = detail + ", " + items(len(info.Objects))
		q.sink.collection(Queue, "Pop", info.ResourceVersion, detail, nil)
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
func (q batchQueue) PopBatch(
	processBatch deltafifo.ProcessBatchFunc, processSingle deltafifo.PopProcessFunc,
) error {
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
