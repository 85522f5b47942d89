// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"example.com/informerstack/store"
)

// A call of a process function is logged if it takes longer than slowProcess while more than
// slowDepth items wait. The limit for a batch is slowProcess for each delta, at most slowBatch.
const (
	slowDepth   = 10
	slowProcess = 100 * time.Millisecond
	slowBatch   = time.Second
)

// base is the part that both queues share: all but the list of items.
type base struct {
	preparer preparer
	known    KeyListerGetter // may be nil
	name     string
	logger   klog.Logger
	metrics  Metrics

	mu      sync.Mutex
	cond    sync.Cond // signalled for each new item, broadcast by Close; its lock is mu
	closed  bool
	counter counter // of the items; it also knows how many are queued
}

func (b *base) init(opts Options, defaultName string) {
	b.preparer.keyFunc, b.preparer.transformer = opts.KeyFunction, opts.Transformer
	if b.preparer.keyFunc == nil {
		b.preparer.keyFunc = store.MetaNamespaceKeyFunc
	}
	logger := klog.Background()
	if opts.Logger != nil {
		logger = *opts.Logger
	}
	b.name = cmp.Or(opts.Name, defaultName)
	b.logger = klog.LoggerWithName(logger, b.name)
	b.known, b.metrics = opts.KnownObjects, opts.Metrics
	b.cond.L = &b.mu
	b.counter = counter{synced: make(chan struct{}), reached: opts.Reached}
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

func (b *base) reportDepthLocked() {
	if b.metrics.Depth != nil {
		b.metrics.Depth(b.counter.len())
	}
}

// waitLocked blocks until an item is queued. It fails if the queue is closed and empty.
func (b *base) waitLocked() error {
	for b.counter.len() == 0 {
		if b.closed {
			return ErrFIFOClosed
		}
		b.cond.Wait()
	}
	return nil
}

// processLocked runs process for the n items that were just removed from the list. key is the key
// of the first one. With unlock, process runs without the lock. A slow call is logged while more
// than slowDepth items wait.
func (b *base) processLocked(
	what, key string, n int, unlock bool, process func() error,
) (err error) {
	ok, first := false, b.counter.pop(n)
	defer func() { b.counter.finish(first, ok) }()
	b.reportDepthLocked()
	depth := b.counter.len()
	if unlock {
		b.mu.Unlock()
		defer b.mu.Lock() // before finish, also if process panics
	}
	measured := b.metrics.Latency != nil || depth > slowDepth
	var start time.Time
	if measured {
		start = time.Now()
	}
	err = process()
	if measured {
		took := time.Since(start)
		if b.metrics.Latency != nil {
			b.metrics.Latency(took)
		}
		if depth > slowDepth && took > min(slowProcess*time.Duration(n), slowBatch) {
			b.logger.V(2).Info(what, "ID", key, "Depth", depth, "BatchSize", n, "took", took,
				"Reason", "slow event handlers blocking the queue")
		}
	}
	ok = err == nil
	return err
}

// resyncLocked calls put with a Sync for each known object that is not queued. Known objects
// without a key are skipped and reported together as an error.
func (b *base) resyncLocked(queued func(key string) bool, put func(key string, d Delta)) error {
	if b.known == nil {
		return nil
	}
	var errs []error
	for _, known := range b.known.ListKeys() {
		obj, exists := b.knownObject(known)
		if !exists {
			continue
		}
		key, err := b.preparer.keyOf(obj)
		switch {
		case err != nil:
			errs = append(errs, store.KeyError{Obj: obj, Err: err})
		case !queued(key):
			put(key, Delta{Sync, obj})
		}
	}
	return errors.Join(errs...)
}

// deleteKnownLocked calls put with a tombstone for each known key that is not present in a list or
// in the queue. The tombstone has the known object, or nil if it cannot be read.
func (b *base) deleteKnownLocked(present func(key string) bool, put func(key string, d Delta)) {
	if b.known == nil {
		return
	}
	for _, key := range b.known.ListKeys() {
		if !present(key) {
			obj, _ := b.knownObject(key)
			put(key, tombstone(key, obj))
		}
	}
}

// knownObject returns the object of a known key. If it cannot be read, the log says why.
func (b *base) knownObject(key string) (obj any, exists bool) {
	obj, exists, err := b.known.GetByKey(key)
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
