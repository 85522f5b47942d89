// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
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

// ErrZeroLengthDeltasObject is inside the store.KeyError for empty Deltas.
var ErrZeroLengthDeltasObject = errors.New("0 length Deltas object; can't get key")

// base is the part that both queues share: all but the items.
type base struct {
	keyFunc     store.KeyFunc
	transformer store.TransformFunc // may be nil
	known       KeyListerGetter     // may be nil
	name        string
	logger      klog.Logger
	metrics     Metrics

	// transforming guards no field. It limits transformer to one goroutine at a time, as
	// store.TransformFunc promises.
	transforming sync.Mutex

	mu       sync.Mutex
	cond     sync.Cond   // signalled for each new item, broadcast by Close; its lock is mu
	closed   atomic.Bool // mu guards only its change
	progress progress
}

func (b *base) init(opts Options, defaultName string) {
	b.keyFunc, b.transformer = opts.KeyFunction, opts.Transformer
	if b.keyFunc == nil {
		b.keyFunc = store.MetaNamespaceKeyFunc
	}
	logger := klog.Background()
	if opts.Logger != nil {
		logger = *opts.Logger
	}
	b.name = cmp.Or(opts.Name, defaultName)
	b.logger = klog.LoggerWithName(logger, b.name)
	b.known, b.metrics = opts.KnownObjects, opts.Metrics
	b.cond.L = &b.mu
	b.progress = progress{synced: make(chan struct{}), reached: opts.Reached}
}

// Name returns the name given to the constructor. With Done it makes the queue a DoneChecker.
func (b *base) Name() string { return b.name }

// Done returns a channel that closes when HasSynced becomes true.
func (b *base) Done() <-chan struct{} { return b.progress.synced }

// HasSynced is true once the content of the first Replace has been popped and processed. It is true
// at once if an Add, Update or Delete came before the first Replace. It does not block.
func (b *base) HasSynced() bool { return b.progress.isSynced() }

// HasSyncedChecker returns HasSynced as a channel.
func (b *base) HasSyncedChecker() DoneChecker { return b }

// Transformer returns the function that transforms objects before they are queued, or nil.
func (b *base) Transformer() store.TransformFunc { return b.transformer }

// Stored calls Reached now, and not after the process function has returned. A process function may
// call it once, when it has applied all its deltas. An informer calls it before it notifies
// handlers.
func (b *base) Stored() { b.progress.reportStored() }

// Close wakes every blocked Pop. Queued items can still be popped, and more can be added; a Pop
// of an empty queue returns ErrFIFOClosed. A second Close is a no-op.
func (b *base) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed.Store(true)
	b.cond.Broadcast()
}

// IsClosed reports whether Close was called. It does not block.
func (b *base) IsClosed() bool { return b.closed.Load() }

// waitLocked blocks until an item is queued. It fails if the queue is closed and empty.
func (b *base) waitLocked(isEmpty func() bool) error {
	for isEmpty() {
		if b.closed.Load() {
			return ErrFIFOClosed
		}
		b.cond.Wait()
	}
	return nil
}

// processing describes some items that were removed from the queue.
type processing struct {
	what, key string   // for the log; the key is that of the first item
	n, left   int      // items removed, and items that are still queued
	mark      *version // the newest of their marks
	unlock    bool     // process without the lock
}

// processLocked runs process for items that were just removed. A slow call is logged while more
// than slowDepth items wait.
func (b *base) processLocked(p processing, process func() error) (err error) {
	ok, first := false, b.progress.start(p.n, p.mark)
	defer func() { b.progress.finish(first, ok) }()
	b.reportDepthLocked(p.left)
	if p.unlock {
		b.mu.Unlock()
		defer b.mu.Lock() // before finish, even if process panics
	}
	measured := b.metrics.Latency != nil || p.left > slowDepth
	var start time.Time
	if measured {
		start = time.Now()
	}
	err = process()
	if measured {
		b.measured(p, time.Since(start))
	}
	ok = err == nil
	return err
}

func (b *base) measured(p processing, took time.Duration) {
	if b.metrics.Latency != nil {
		b.metrics.Latency(took)
	}
	if p.left > slowDepth && took > min(slowProcess*time.Duration(p.n), slowBatch) {
		b.logger.V(2).Info(p.what, "ID", p.key, "Depth", p.left, "BatchSize", p.n, "took", took,
			"Reason", "slow event handlers blocking the queue")
	}
}

func (b *base) reportDepthLocked(n int) {
	if b.metrics.Depth != nil {
		b.metrics.Depth(n)
	}
}

// prepared is an object that is ready to be queued, and the key of the received object.
type prepared struct {
	key string
	obj any
}

// keyOf computes the key of an object, of a tombstone, or of the newest object among Deltas.
func (b *base) keyOf(obj any) (string, error) {
	if deltas, ok := obj.(Deltas); ok {
		if len(deltas) == 0 {
			return "", store.KeyError{Obj: obj, Err: ErrZeroLengthDeltasObject}
		}
		obj = deltas.Newest().Object
	}
	if tombstone, ok := obj.(store.DeletedFinalStateUnknown); ok {
		return tombstone.Key, nil
	}
	return b.keyFunc(obj)
}

// transform returns the object to queue. A tombstone is not transformed: its object comes from
// a cache.
func (b *base) transform(key string, obj any) (any, error) {
	if b.transformer == nil {
		return obj, nil
	}
	if _, ok := obj.(store.DeletedFinalStateUnknown); ok {
		return obj, nil
	}
	b.transforming.Lock()
	defer b.transforming.Unlock()
	transformed, err := b.transformer(obj)
	if err != nil {
		return nil, fmt.Errorf("transform object %q: %w", key, err)
	}
	return transformed, nil
}

func (b *base) prepare(obj any) (prepared, error) {
	key, err := b.keyOf(obj)
	if err != nil {
		return prepared{}, store.KeyError{Obj: obj, Err: err}
	}
	obj, err = b.transform(key, obj)
	return prepared{key, obj}, err
}

// prepareAll prepares every object of a list. It fails if one of them fails.
func (b *base) prepareAll(list []any) ([]prepared, error) {
	all := make([]prepared, len(list))
	for i, obj := range list {
		received, err := b.prepare(obj)
		if err != nil {
			return nil, err
		}
		all[i] = received
	}
	return all, nil
}

// prepareList is prepareAll for a list that is queued as one. It returns list itself if there is
// no transformer.
func (b *base) prepareList(list []any) ([]any, error) {
	if b.transformer != nil {
		list = slices.Clone(list)
	}
	for i, obj := range list {
		received, err := b.prepare(obj)
		if err != nil {
			return nil, err
		}
		if b.transformer != nil {
			list[i] = received.obj
		}
	}
	return list, nil
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
		key, err := b.keyOf(obj)
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
