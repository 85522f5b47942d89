// SPDX-License-Identifier: Apache-2.0

package deltafifo

import "errors"

// DeltaType says what happened to an object.
type DeltaType string

// The types of a Delta. The last three are not about a single object.
const (
	Added    DeltaType = "Added"
	Updated  DeltaType = "Updated"
	Deleted  DeltaType = "Deleted"
	Replaced DeltaType = "Replaced" // a relist held the object
	Sync     DeltaType = "Sync"     // a resync replays the object

	ReplacedAll DeltaType = "ReplacedAll" // a whole list: Object is a ReplacedAllInfo
	SyncAll     DeltaType = "SyncAll"     // a resync of everything: Object is a SyncAllInfo
	Bookmark    DeltaType = "Bookmark"    // time passed without a change: Object is a BookmarkInfo
)

// Delta is one change: what happened, and the object after it happened (for a delete: before it vanished).
//
// Source: tools/cache/delta_fifo.go Delta
type Delta struct {
	Type   DeltaType
	Object any
}

// Deltas is everything that happened to one object since its consumer last looked, oldest first.
type Deltas []Delta

// Oldest returns the first delta, or nil when there is none.
func (d Deltas) Oldest() *Delta {
	if len(d) == 0 {
		return nil
	}
	return &d[0]
}

// Newest returns the last delta, or nil when there is none.
func (d Deltas) Newest() *Delta {
	if len(d) == 0 {
		return nil
	}
	return &d[len(d)-1]
}

// ReplacedAllInfo is the object of a ReplacedAll delta: the collection's whole content at ResourceVersion.
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

// ErrFIFOClosed is what Pop returns once the queue is closed and empty.
var ErrFIFOClosed = errors.New("DeltaFIFO: manipulating with closed queue")

// PopProcessFunc consumes what Pop takes out: Deltas, of one object or with one delta that is about all.
// isInInitialList is true while the first list is being delivered.
type PopProcessFunc func(obj any, isInInitialList bool) error

// ProcessBatchFunc consumes a batch: one delta each of different objects, in arrival order. The slice is the consumer's
// own.
type ProcessBatchFunc func(deltas []Delta, isInInitialList bool) error

// Queue is what stands between a reflector that produces changes and the one consumer that pops them.
//
// Source: tools/cache/fifo.go Queue
type Queue interface {
	Add(obj any) error
	Update(obj any) error
	Delete(obj any) error
	Replace(list []any, resourceVersion string) error
	Resync() error

	// Pop blocks until there is something to consume, takes it out and runs process on it. It returns what it took out
	// and process's error; the item is gone either way. On a queue that is closed and empty it returns ErrFIFOClosed.
	Pop(process PopProcessFunc) (any, error)
	// HasSynced is true once everything of the first Replace was popped and processed, or at once if an Add, Update or
	// Delete came first.
	HasSynced() bool
	// HasSyncedChecker returns HasSynced as a channel.
	HasSyncedChecker() DoneChecker
	// Close wakes a blocked Pop. What is queued can still be popped.
	Close()
}

// QueueWithBatch is a Queue that can hand over many objects' changes at once.
//
// Source: tools/cache/fifo.go QueueWithBatch
type QueueWithBatch interface {
	Queue
	// PopBatch blocks like Pop. A single delta goes to processSingle as Deltas of one, several go to processBatch.
	PopBatch(processBatch ProcessBatchFunc, processSingle PopProcessFunc) error
}

// DoneChecker is something that happens once: a name for messages, and a channel that closes when it has happened.
//
// Source: tools/cache/shared_informer.go DoneChecker
type DoneChecker interface {
	Name() string
	Done() <-chan struct{}
}
