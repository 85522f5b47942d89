// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/klog/v2"

	"example.com/informerstack/store"
)

// KeyListerGetter lists the objects that the consumer of a queue holds. Usually it is a
// store.Store. A queue calls it under its lock, so that known and queued objects are read at one
// moment. It must not call the queue.
//
// Source: tools/cache/delta_fifo.go KeyListerGetter
type KeyListerGetter interface {
	ListKeys() []string
	GetByKey(key string) (value any, exists bool, err error)
}

// HistogramMetric collects single observations.
//
// Source: tools/cache/reflector_metrics.go HistogramMetric
type HistogramMetric interface{ Observe(float64) }

// Metrics receives a queue's numbers. A nil field is not used. The hooks may run under the queue's
// lock: they must be quick and must not call the queue.
type Metrics struct {
	// QueuedItems is the number of keys in a DeltaFIFO, or of deltas in a RealFIFO.
	QueuedItems interface{ Set(float64) }
	// ProcessingLatency is the duration of each call of a process function, in seconds.
	ProcessingLatency HistogramMetric
}

// A call of a process function is logged if it takes longer than slowProcess while more than
// slowDepth items wait. The limit for a batch is slowProcess for each delta, at most slowBatch.
const (
	slowDepth   = 10
	slowProcess = 100 * time.Millisecond
	slowBatch   = time.Second
)

// base is the part that both queues share.
type base struct {
	preparer preparer
	name     string
	logger   klog.Logger
	metrics  Metrics

	mu      sync.Mutex
	cond    sync.Cond // signalled for each new item, broadcast by Close; its lock is mu
	closed  bool
	counter counter
}

func (b *base) init(name string, logger *klog.Logger, reached func(string, time.Time)) {
	if b.preparer.keyFunc == nil {
		b.preparer.keyFunc = store.MetaNamespaceKeyFunc
	}
	root := klog.Background()
	if logger != nil {
		root = *logger
	}
	b.name, b.logger = name, klog.LoggerWithName(root, name)
	b.cond.L = &b.mu
	b.counter = newCounter(reached)
}

// Name returns the name given to the constructor. With Done it makes the queue a DoneChecker.
func (b *base) Name() string { return b.name }

// Done returns a channel that closes when HasSynced becomes true.
func (b *base) Done() <-chan struct{} { return b.counter.synced }

// HasSynced is true once the content of the first Replace has been popped and processed. It is true
// at once if an Add, Update or Delete came before the first Replace. It does not block.
func (b *base) HasSynced() bool { return b.counter.isSynced() }

// HasSyncedChecker returns HasSynced as a channel.
func (b *base) HasSyncedChecker() DoneChecker { return b }

// Transformer returns the function that transforms objects before they are queued, or nil.
func (b *base) Transformer() store.TransformFunc { return b.preparer.transformer }

// Received notes that every change up to resourceVersion, which was current at asOf, has been
// queued. The queue calls Reached with both when all of them are processed, at once if nothing is
// queued. The resourceVersion of a server without resourceVersions is "".
//
// The queue may also call Reached with the resourceVersion of a queued change and a zero asOf. It
// does not call Reached for a change whose processing failed, or for later changes, until a Replace
// has come after the failure. Reached may run under the queue's lock and must not call the queue.
func (b *base) Received(resourceVersion string, asOf time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.counter.receive(resourceVersion, asOf)
}

// Stored lets a process function report that it has applied all its deltas, before it returns: then
// Reached is called at once, and not after the process function has returned. A process function
// may call it once. An informer calls it before it notifies handlers.
func (b *base) Stored() { b.counter.reportStored() }

// changedLocked notes the resourceVersion of an object that was just queued.
func (b *base) changedLocked(obj any) {
	if !b.counter.ordered {
		return
	}
	if m, err := meta.Accessor(obj); err == nil {
		b.counter.changed(m.GetResourceVersion())
	}
}

// Close wakes every blocked Pop. Queued items can still be popped, and more can be added; a Pop
// of an empty queue returns ErrFIFOClosed. A second Close is a no-op.
func (b *base) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.cond.Broadcast()
}

// IsClosed reports whether Close was called.
func (b *base) IsClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

func (b *base) setQueued(n int) {
	if b.metrics.QueuedItems != nil {
		b.metrics.QueuedItems.Set(float64(n))
	}
}

// processLocked runs process for the batchLen items that were just removed, while depth more are
// queued. key is the key of the first one. With unlock, process runs without the lock.
func (b *base) processLocked(
	what, key string, depth, batchLen int, unlock bool, process func() error,
) (err error) {
	ok, first := false, b.counter.pop(batchLen)
	defer func() { b.counter.finish(first, ok) }()
	if unlock {
		b.mu.Unlock()
		defer b.mu.Lock() // before finish, also if process panics
	}
	err = b.timed(what, key, depth, batchLen, process)
	ok = err == nil
	return err
}

// timed measures a call of process, and logs it if it was slow.
func (b *base) timed(what, key string, depth, batchLen int, process func() error) error {
	if b.metrics.ProcessingLatency == nil && depth <= slowDepth {
		return process()
	}
	start := time.Now()
	err := process()
	took := time.Since(start)
	if b.metrics.ProcessingLatency != nil {
		b.metrics.ProcessingLatency.Observe(took.Seconds())
	}
	if depth > slowDepth && took > min(slowProcess*time.Duration(batchLen), slowBatch) {
		b.logger.V(2).Info(what, "ID", key, "Depth", depth, "BatchSize", batchLen, "took", took,
			"Reason", "slow event handlers blocking the queue")
	}
	return err
}

// known returns the object of a known key. If it cannot be read, the log says why.
func (b *base) known(objects KeyListerGetter, key string) (obj any, exists bool) {
	obj, exists, err := objects.GetByKey(key)
	switch {
	case err != nil:
		b.logger.Error(err, "Known object cannot be read", "key", key)
		return nil, false
	case !exists:
		b.logger.Info("Known key has no object", "key", key)
		return nil, false
	}
	return obj, true
}

// tombstone returns the Deleted delta of a key whose last known object is obj, which may be a
// tombstone itself.
func tombstone(key string, obj any) Delta {
	if inner, ok := obj.(store.DeletedFinalStateUnknown); ok {
		obj = inner.Obj
	}
	return Delta{Deleted, store.DeletedFinalStateUnknown{Key: key, Obj: obj}}
}

// longQueue is the capacity above which an empty queue gives its memory back.
const longQueue = 1024

// fifo is a first-in, first-out list: a slice, and the index of its oldest item.
//
//	F1  0 <= head <= len(slots); head = 0 if the list is empty
//	F2  slots[:head], and the slots after len(slots), are zero: nothing popped stays reachable
type fifo[T any] struct {
	slots []T
	head  int
}

// items returns the items, oldest first. The slice is valid until the next pop.
func (q *fifo[T]) items() []T { return q.slots[q.head:] }

func (q *fifo[T]) len() int { return len(q.slots) - q.head }

// push moves the items to the front if the slice is full and half of it is free. So it takes
// constant time on average.
func (q *fifo[T]) push(item T) {
	if len(q.slots) == cap(q.slots) && q.head > len(q.slots)/2 {
		n := copy(q.slots, q.items())
		clear(q.slots[n:])
		q.slots, q.head = q.slots[:n], 0
	}
	q.slots = append(q.slots, item)
}

// pop removes the n oldest items. It reports whether it gave memory back.
func (q *fifo[T]) pop(n int) (released bool) {
	clear(q.slots[q.head : q.head+n])
	q.head += n
	if q.len() > 0 {
		return false
	}
	q.slots, q.head = q.slots[:0], 0
	if cap(q.slots) <= longQueue {
		return false
	}
	q.slots = nil
	return true
}
