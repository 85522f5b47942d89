// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"sync"
	"time"

	"k8s.io/klog/v2"

	"example.com/informerstack/store"
)

// KeyListerGetter is what the consumer of a queue already knows, usually a store.Store. A queue calls it with its lock
// held, so that what is known and what is queued are seen at one moment; it must not call the queue.
//
// Source: tools/cache/delta_fifo.go KeyListerGetter
type KeyListerGetter interface {
	KeyLister
	KeyGetter
}

// KeyLister lists the known keys.
type KeyLister interface {
	ListKeys() []string
}

// KeyGetter finds a known object.
type KeyGetter interface {
	GetByKey(key string) (value any, exists bool, err error)
}

// GaugeMetric is a number that goes up and down.
//
// Source: tools/cache/reflector_metrics.go GaugeMetric
type GaugeMetric interface{ Set(float64) }

// HistogramMetric counts observations by size.
//
// Source: tools/cache/reflector_metrics.go HistogramMetric
type HistogramMetric interface{ Observe(float64) }

// Metrics receives a queue's numbers. A nil field costs nothing. The hooks may run with the queue locked: they must be
// quick, and must not call the queue.
type Metrics struct {
	// QueuedItems is how many keys wait in a DeltaFIFO, or how many deltas in a RealFIFO.
	QueuedItems GaugeMetric
	// ProcessingLatency is how long each call of a process function took, in seconds.
	ProcessingLatency HistogramMetric
}

// A process function that takes longer than slowProcess while more than slowDepth items wait is logged. A batch may take
// as much for each of its deltas, up to slowBatch.
const (
	slowDepth   = 10
	slowProcess = 100 * time.Millisecond
	slowBatch   = time.Second
)

// base is what both queues share: a name, the intake, the lock with its way to wait and to close, the first list.
type base struct {
	intake  intake
	name    string
	logger  klog.Logger
	metrics Metrics

	mu       sync.Mutex
	cond     sync.Cond // signalled for each new item, broadcast by Close; its lock is mu
	closed   bool
	first    firstList
	barriers barriers
}

func (b *base) init(name string, logger *klog.Logger, keyFunc store.KeyFunc, transformer store.TransformFunc,
	metrics Metrics) {
	if keyFunc == nil {
		keyFunc = store.MetaNamespaceKeyFunc
	}
	root := klog.Background()
	if logger != nil {
		root = *logger
	}
	b.intake.keyFunc, b.intake.transformer = keyFunc, transformer
	b.name, b.logger, b.metrics = name, klog.LoggerWithName(root, name), metrics
	b.cond.L = &b.mu
	b.first = newFirstList()
}

// Name returns the name given to the constructor. With Done it makes the queue a DoneChecker.
func (b *base) Name() string { return b.name }

// Done returns a channel that closes when HasSynced becomes true.
func (b *base) Done() <-chan struct{} { return b.first.done }

// HasSynced is true once everything of the first Replace was popped and processed, or at once if an Add, Update or Delete
// came first. It never blocks.
func (b *base) HasSynced() bool { return b.first.isDone() }

// HasSyncedChecker returns HasSynced as a channel.
func (b *base) HasSyncedChecker() DoneChecker { return b }

// Transformer returns the function that objects are passed through before they are queued, or nil.
func (b *base) Transformer() store.TransformFunc { return b.intake.transformer }

// Close wakes every blocked Pop. What is queued can still be popped, and even more can be added; a Pop that finds the
// queue empty returns ErrFIFOClosed. Closing twice does no harm.
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

// run calls process on batchLen items, the first of which has the given key, while depth more wait.
func (b *base) run(what, key string, depth, batchLen int, process func() error) error {
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

// known looks key up for a delta of it. Without an object there is a reason in the log.
func (b *base) known(objects KeyGetter, key string) (obj any, exists bool) {
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

// tombstone marks key as deleted, last seen as obj, which may be a tombstone itself.
func tombstone(key string, obj any) Delta {
	if inner, ok := obj.(store.DeletedFinalStateUnknown); ok {
		obj = inner.Obj
	}
	return Delta{Deleted, store.DeletedFinalStateUnknown{Key: key, Obj: obj}}
}
