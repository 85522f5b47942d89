// SPDX-License-Identifier: Apache-2.0

package deltafifo

import "errors"

// DeltaType is the kind of a change.
type DeltaType string

// The types of a Delta. The last three do not concern a single object.
const (
	Added    DeltaType = "Added"
	Updated  DeltaType = "Updated"
	Deleted  DeltaType = "Deleted"
	Replaced DeltaType = "Replaced" // a relist contained the object
	Sync     DeltaType = "Sync"     // a resync replays the object

	ReplacedAll DeltaType = "ReplacedAll" // a whole list: Object is a ReplacedAllInfo
	SyncAll     DeltaType = "SyncAll"     // a resync of all objects: Object is a SyncAllInfo
	Bookmark    DeltaType = "Bookmark"    // a bookmark of the server: Object is a BookmarkInfo
)

// Delta is one change: its type, and the object after it. For a delete it is the last state of the
// object, or a store.DeletedFinalStateUnknown.
//
// Source: tools/cache/delta_fifo.go Delta
type Delta struct {
	Type   DeltaType
	Object any
}

// Deltas is the list of changes of one object that are delivered together, oldest first.
type Deltas []Delta

// Oldest returns the first delta, or nil if d is empty.
func (d Deltas) Oldest() *Delta {
	if len(d) == 0 {
		return nil
	}
	return &d[0]
}

// Newest returns the last delta, or nil if d is empty.
func (d Deltas) Newest() *Delta {
	if len(d) == 0 {
		return nil
	}
	return &d[len(d)-1]
}

// ReplacedAllInfo is the object of a ReplacedAll delta: the whole content of the collection at
// ResourceVersion.
type ReplacedAllInfo struct {
	ResourceVersion string
	Objects         []any
}

// SyncAllInfo is the object of a SyncAll delta.
type SyncAllInfo struct{}

// BookmarkInfo is the object of a Bookmark delta.
type BookmarkInfo struct {
	ResourceVersion string
}

// ErrFIFOClosed is the error of Pop when the queue is closed and empty.
var ErrFIFOClosed = errors.New("DeltaFIFO: manipulating with closed queue")

// PopProcessFunc consumes the Deltas that Pop removes: the changes of one object, or a single delta
// that concerns the whole collection. isInInitialList is true until the first list has been
// processed.
type PopProcessFunc func(obj any, isInInitialList bool) error

// ProcessBatchFunc consumes a batch: one delta for each of several objects, in order of arrival.
// The slice belongs to the consumer.
type ProcessBatchFunc func(deltas []Delta, isInInitialList bool) error

// Queue holds changes between a reflector, which adds them, and one consumer, which pops them.
//
// Source: tools/cache/fifo.go Queue
type Queue interface {
	Add(obj any) error
	Update(obj any) error
	Delete(obj any) error
	Replace(list []any, resourceVersion string) error
	Resync() error

	// Pop blocks until an item is queued, removes the oldest item and runs process on it. It
	// returns the item and process's error. An error does not put the item back. If the queue is
	// closed and empty, Pop returns ErrFIFOClosed.
	Pop(process PopProcessFunc) (any, error)
	// HasSynced is true once the content of the first Replace has been popped and processed. It is
	// true at once if an Add, Update or Delete came before the first Replace.
	HasSynced() bool
	// HasSyncedChecker returns HasSynced as a channel.
	HasSyncedChecker() DoneChecker
	// Close wakes a blocked Pop. Queued items can still be popped.
	Close()
}

// QueueWithBatch is a Queue that can deliver the changes of many objects at once.
//
// Source: tools/cache/fifo.go QueueWithBatch
type QueueWithBatch interface {
	Queue
	// PopBatch blocks as Pop does. It calls processSingle for a single delta, as Deltas of length
	// 1, and processBatch for several.
	PopBatch(processBatch ProcessBatchFunc, processSingle PopProcessFunc) error
}

// DoneChecker reports an event that happens once. Done returns a channel that closes when it
// happens. Name is for messages.
//
// Source: tools/cache/shared_informer.go DoneChecker
type DoneChecker interface {
	Name() string
	Done() <-chan struct{}
}
