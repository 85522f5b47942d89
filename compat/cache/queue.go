// SPDX-License-Identifier: Apache-2.0

package cache

import (
	"cmp"

	"k8s.io/klog/v2"

	"example.com/informerstack/deltafifo"
)

// The types of queues and of their options. Each is the type of package deltafifo.
type (
	// Queue takes changes from a reflector and passes them to one consumer.
	Queue = deltafifo.Queue
	// QueueWithBatch hands over many objects' changes at once.
	QueueWithBatch = deltafifo.QueueWithBatch
	// PopProcessFunc consumes what Pop takes out.
	PopProcessFunc = deltafifo.PopProcessFunc
	// ProcessBatchFunc consumes a batch.
	ProcessBatchFunc = deltafifo.ProcessBatchFunc

	// Delta is one change.
	Delta = deltafifo.Delta
	// Deltas is what happened to one object.
	Deltas = deltafifo.Deltas
	// DeltaType says what happened.
	DeltaType = deltafifo.DeltaType
	// ReplacedAllInfo is the object of a ReplacedAll delta.
	ReplacedAllInfo = deltafifo.ReplacedAllInfo
	// SyncAllInfo is the object of a SyncAll delta.
	SyncAllInfo = deltafifo.SyncAllInfo
	// BookmarkInfo is the object of a Bookmark delta.
	BookmarkInfo = deltafifo.BookmarkInfo

	// KeyListerGetter is what the consumer of a queue knows.
	KeyListerGetter = deltafifo.KeyListerGetter

	// DeltaFIFO is a queue of keys, each with what happened to its object.
	DeltaFIFO = deltafifo.DeltaFIFO
	// RealFIFO is a queue of deltas in the order of arrival.
	RealFIFO = deltafifo.RealFIFO
)

// KeyLister is one half of KeyListerGetter.
//
// Source: tools/cache/delta_fifo.go KeyLister
type KeyLister interface {
	// ListKeys returns the known keys.
	ListKeys() []string
}

// KeyGetter is the other half of KeyListerGetter.
//
// Source: tools/cache/delta_fifo.go KeyGetter
type KeyGetter interface {
	// GetByKey returns a known object.
	GetByKey(key string) (value any, exists bool, err error)
}

// The types of a Delta.
const (
	Added       = deltafifo.Added
	Updated     = deltafifo.Updated
	Deleted     = deltafifo.Deleted
	Replaced    = deltafifo.Replaced
	ReplacedAll = deltafifo.ReplacedAll
	Sync        = deltafifo.Sync
	SyncAll     = deltafifo.SyncAll
	Bookmark    = deltafifo.Bookmark
)

// Errors of queues.
var (
	// ErrFIFOClosed is what Pop returns once the queue is closed and empty.
	ErrFIFOClosed = deltafifo.ErrFIFOClosed
	// ErrZeroLengthDeltasObject is inside the KeyError for empty Deltas.
	ErrZeroLengthDeltasObject = deltafifo.ErrZeroLengthDeltasObject
)

// DeltaFIFOOptions configures a DeltaFIFO. All are optional.
//
// Source: tools/cache/delta_fifo.go DeltaFIFOOptions
type DeltaFIFOOptions struct {
	// Logger gets the queue's name added; nil means klog.Background().
	Logger *klog.Logger
	// Name is for messages.
	Name string
	// KeyFunction computes keys; nil means MetaNamespaceKeyFunc.
	KeyFunction KeyFunc
	// KnownObjects is what the consumer holds.
	KnownObjects KeyListerGetter
	// EmitDeltaTypeReplaced makes Replace queue listed objects as Replaced, not as Sync.
	EmitDeltaTypeReplaced bool
	// Transformer changes each received object before it is queued.
	Transformer TransformFunc
}

// NewDeltaFIFO returns a DeltaFIFO that queues what a Replace lists as Sync.
//
// Source: tools/cache/delta_fifo.go NewDeltaFIFO
func NewDeltaFIFO(keyFunc KeyFunc, knownObjects KeyListerGetter) *DeltaFIFO {
	return deltafifo.NewDeltaFIFO(
		deltafifo.Options{KeyFunction: keyFunc, KnownObjects: knownObjects},
	)
}

// NewDeltaFIFOWithOptions returns a DeltaFIFO.
//
// Source: tools/cache/delta_fifo.go NewDeltaFIFOWithOptions
func NewDeltaFIFOWithOptions(opts DeltaFIFOOptions) *DeltaFIFO {
	return deltafifo.NewDeltaFIFO(deltafifo.Options{
		Logger:                opts.Logger,
		Name:                  opts.Name,
		KeyFunction:           opts.KeyFunction,
		KnownObjects:          opts.KnownObjects,
		EmitDeltaTypeReplaced: opts.EmitDeltaTypeReplaced,
		Transformer:           opts.Transformer,
	})
}

// RealFIFOOptions configures a RealFIFO. It is that of package deltafifo, with client-go's way to
// name metrics.
//
// Source: tools/cache/the_real_fifo.go RealFIFOOptions
type RealFIFOOptions struct {
	// Logger gets the queue's name added; nil means klog.Background().
	Logger *klog.Logger
	// Name is for messages, if Identifier has no name.
	Name string
	// KeyFunction computes keys; nil means MetaNamespaceKeyFunc.
	KeyFunction KeyFunc
	// KnownObjects is what the consumer holds: required without AtomicEvents, forbidden with it.
	KnownObjects KeyListerGetter
	// Transformer changes each received object before it is queued.
	Transformer TransformFunc
	// AtomicEvents makes a Replace and a Resync one delta each.
	AtomicEvents bool
	// UnlockWhileProcessing lets producers add changes while a process function runs. It needs
	// AtomicEvents.
	UnlockWhileProcessing bool
	// Identifier names the queue in metrics. Without a reserved Identifier, the queue has no
	// metrics.
	Identifier InformerNameAndResource
	// MetricsProvider makes the metrics; nil means the one of SetInformerMetricsProvider.
	MetricsProvider InformerMetricsProvider
	// EmitDeltaTypeBookmark makes Bookmark queue a delta. It needs AtomicEvents.
	EmitDeltaTypeBookmark bool
}

// NewRealFIFO returns a RealFIFO without atomic events, so that knownObjects must not be nil.
//
// Source: tools/cache/the_real_fifo.go NewRealFIFO
func NewRealFIFO(
	keyFunc KeyFunc,
	knownObjects KeyListerGetter,
	transformer TransformFunc,
) *RealFIFO {
	return NewRealFIFOWithOptions(
		RealFIFOOptions{KeyFunction: keyFunc, KnownObjects: knownObjects, Transformer: transformer},
	)
}

// NewRealFIFOWithOptions returns a RealFIFO. It panics if the options contradict each other.
//
// Source: tools/cache/the_real_fifo.go NewRealFIFOWithOptions
func NewRealFIFOWithOptions(opts RealFIFOOptions) *RealFIFO {
	return deltafifo.NewRealFIFO(deltafifo.Options{
		Logger:                opts.Logger,
		Name:                  cmp.Or(opts.Identifier.Name(), opts.Name),
		KeyFunction:           opts.KeyFunction,
		KnownObjects:          opts.KnownObjects,
		Transformer:           opts.Transformer,
		AtomicEvents:          opts.AtomicEvents,
		UnlockWhileProcessing: opts.UnlockWhileProcessing,
		EmitDeltaTypeBookmark: opts.EmitDeltaTypeBookmark,
		Metrics:               queueMetrics(opts.Identifier, opts.MetricsProvider),
	})
}
