// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"time"

	"k8s.io/klog/v2"

	"example.com/informerstack/store"
)

// Options configures a DeltaFIFO or a RealFIFO.
//
// Source: tools/cache/delta_fifo.go DeltaFIFOOptions, tools/cache/the_real_fifo.go RealFIFOOptions
type Options struct {
	// Logger gets the queue's name added. Default: klog.Background().
	Logger *klog.Logger
	// Name is for messages. Default: "DeltaFIFO" or "RealFIFO".
	Name string
	// KeyFunction computes the keys of objects. Default: store.MetaNamespaceKeyFunc.
	KeyFunction store.KeyFunc
	// KnownObjects is the consumer's copy of the objects. Without KnownObjects, a DeltaFIFO's
	// Replace cannot report the loss of an object without queued deltas, its Delete drops the
	// delete of such an object, and its Resync is a no-op. A RealFIFO needs either KnownObjects or
	// AtomicEvents, but not both.
	KnownObjects KeyListerGetter
	// Transformer changes each received object before it is queued. Tombstones, and objects that
	// a Resync replays, are not transformed. It runs without the queue's lock and must not add to
	// this queue.
	Transformer store.TransformFunc
	// Metrics receives the queue's numbers.
	Metrics Metrics
	// Progress, if set, is notified of what is queued and processed. An informer sets it, to know
	// which changes its store holds.
	Progress Progress

	// EmitDeltaTypeReplaced makes a DeltaFIFO's Replace queue listed objects as Replaced. Otherwise
	// it queues them as Sync, and a relist looks like a resync. A RealFIFO always uses Replaced.
	EmitDeltaTypeReplaced bool

	// AtomicEvents makes a RealFIFO's Replace queue one ReplacedAll delta, and its Resync one
	// SyncAll delta. Then the consumer must find out which objects are gone, when it processes the
	// delta. The options below need it. A DeltaFIFO ignores all three.
	AtomicEvents bool
	// UnlockWhileProcessing lets producers add to the queue while a process function runs, as long
	// as fewer than 2000 deltas wait. From then on the queue stays locked, and producers wait for
	// the consumer. It needs a single consumer.
	UnlockWhileProcessing bool
	// EmitDeltaTypeBookmark makes Bookmark queue a delta.
	EmitDeltaTypeBookmark bool
}

// Progress follows a queue. Items are processed in the order in which they were queued. An item is
// a key of a DeltaFIFO, or a delta of a RealFIFO.
type Progress interface {
	// Queued is called in each Add, Update, Delete, Replace and Bookmark that succeeds, under the
	// queue's lock, with the number of items that were queued so far. The change of the call, and
	// every change before it, is in these items. Queued must not call the queue.
	Queued(items int)
	// Process must call process and return its error. It is called in each Pop and PopBatch, in
	// the consumer's goroutine, and under the queue's lock if process is. items is the number of
	// items that were popped so far, deltas is the number that process gets.
	Process(items, deltas int, process func() error) error
}

// Metrics receives a queue's numbers. A nil field is not measured. The functions may run under the
// queue's lock: they must be quick and must not call the queue.
type Metrics struct {
	// Depth is called with the number of queued keys of a DeltaFIFO, or deltas of a RealFIFO.
	Depth func(n int)
	// Latency is called with the duration of each call of a process function.
	Latency func(d time.Duration)
}

// KeyListerGetter lists the objects that the consumer of a queue holds. Usually it is a
// store.Store. A queue calls it under its lock, so that known and queued objects are read at one
// moment. It must not call the queue.
//
// Source: tools/cache/delta_fifo.go KeyListerGetter
type KeyListerGetter interface {
	ListKeys() []string
	GetByKey(key string) (value any, exists bool, err error)
}
