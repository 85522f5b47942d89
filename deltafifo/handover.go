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

// handover is what both queues share: how producers hand in a change, and how the consumer gets it.
// Each queue stores the changes in between in its own way.
type handover struct {
	keyFunc     store.KeyFunc
	transformer store.TransformFunc // may be nil
	known       known
	name        string
	logger      klog.Logger
	metrics     Metrics
	progress    Progress // may be nil

	// transforming guards no field. It limits transformer to one goroutine at a time, as
	// store.TransformFunc promises.
	transforming sync.Mutex

	mu     sync.Mutex
	cond   sync.Cond   // signalled for each new item, broadcast by Close; its lock is mu
	closed atomic.Bool // mu guards only its change
	first
}

func (h *handover) init(opts Options, defaultName string) {
	h.keyFunc, h.transformer = opts.KeyFunction, opts.Transformer
	if h.keyFunc == nil {
		h.keyFunc = store.MetaNamespaceKeyFunc
	}
	logger := klog.Background()
	if opts.Logger != nil {
		logger = *opts.Logger
	}
	h.name = cmp.Or(opts.Name, defaultName)
	h.logger = klog.LoggerWithName(logger, h.name)
	h.known = known{opts.KnownObjects, h.logger}
	h.metrics, h.progress = opts.Metrics, opts.Progress
	h.cond.L = &h.mu
	h.first = first{initial: true, synced: make(chan struct{})}
}

// Name returns the name given to the constructor. With Done it makes the queue a DoneChecker.
func (h *handover) Name() string { return h.name }

// HasSyncedChecker returns HasSynced as a channel.
func (h *handover) HasSyncedChecker() DoneChecker { return h }

// Transformer returns the function that transforms objects before they are queued, or nil.
func (h *handover) Transformer() store.TransformFunc { return h.transformer }

// handedLocked notes that a call has queued what it was given, or that it need not. If it is the
// first call, the items up to firstList are those of the first list.
func (h *handover) handedLocked(firstList int) {
	if !h.begun {
		h.begin(firstList)
	}
	if h.progress != nil {
		h.progress.Queued(h.queued)
	}
}

// Close wakes every blocked Pop. Queued items can still be popped, and more can be added; a Pop
// of an empty queue returns ErrFIFOClosed. A second Close is a no-op.
func (h *handover) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed.Store(true)
	h.cond.Broadcast()
}

// IsClosed reports whether Close was called. It does not block.
func (h *handover) IsClosed() bool { return h.closed.Load() }

// popped describes items that were just removed from the queue.
type popped struct {
	what, key string // for the log; the key is that of the first item
	n, left   int    // items removed, and items that are still queued
	deltas    int    // in the items that were removed
	unlock    bool   // process without the lock
}

// processLocked runs process for popped items. A slow call is logged while more than slowDepth
// items wait.
func (h *handover) processLocked(p popped, process func() error) error {
	items := h.processed + p.n
	defer func() { // even if process panics
		h.processed += p.n
		if h.initial {
			h.checkSynced()
		}
	}()
	if h.metrics.Depth != nil {
		h.metrics.Depth(p.left)
	}
	if p.unlock {
		h.mu.Unlock()
		defer h.mu.Lock()
	}
	measured := h.metrics.Latency != nil || p.left > slowDepth
	var start time.Time
	if measured {
		start = time.Now()
	}
	var err error
	if h.progress != nil {
		err = h.progress.Process(items, p.deltas, process)
	} else {
		err = process()
	}
	if measured {
		h.measured(p, time.Since(start))
	}
	return err
}

func (h *handover) measured(p popped, took time.Duration) {
	if h.metrics.Latency != nil {
		h.metrics.Latency(took)
	}
	if p.left > slowDepth && took > min(slowProcess*time.Duration(p.n), slowBatch) {
		h.logger.V(2).Info(p.what, "ID", p.key, "Depth", p.left, "BatchSize", p.n, "took", took,
			"Reason", "slow event handlers blocking the queue")
	}
}

// prepared is an object that is ready to be queued, and the key of the object as handed in.
type prepared struct {
	key string
	obj any
}

// keyOf computes the key of an object, of a tombstone, or of the newest object among Deltas.
func (h *handover) keyOf(obj any) (string, error) {
	if deltas, ok := obj.(Deltas); ok {
		if len(deltas) == 0 {
			return "", store.KeyError{Obj: obj, Err: ErrZeroLengthDeltasObject}
		}
		obj = deltas.Newest().Object
	}
	if tombstone, ok := obj.(store.DeletedFinalStateUnknown); ok {
		return tombstone.Key, nil
	}
	return h.keyFunc(obj)
}

// transform calls the transformer, and returns the object to queue. A tombstone is not transformed:
// its object comes from a cache.
func (h *handover) transform(key string, obj any) (any, error) {
	if _, ok := obj.(store.DeletedFinalStateUnknown); ok {
		return obj, nil
	}
	h.transforming.Lock()
	defer h.transforming.Unlock()
	transformed, err := h.transformer(obj)
	if err != nil {
		return nil, fmt.Errorf("transform object %q: %w", key, err)
	}
	return transformed, nil
}

func (h *handover) prepare(obj any) (prepared, error) {
	key, err := h.keyOf(obj)
	if err != nil {
		return prepared{}, store.KeyError{Obj: obj, Err: err}
	}
	if h.transformer != nil {
		obj, err = h.transform(key, obj)
	}
	return prepared{key, obj}, err
}

// prepareAll prepares every object of a list. It fails if one of them fails.
func (h *handover) prepareAll(list []any) ([]prepared, error) {
	all := make([]prepared, len(list))
	for i, obj := range list {
		received, err := h.prepare(obj)
		if err != nil {
			return nil, err
		}
		all[i] = received
	}
	return all, nil
}

// prepareList is prepareAll for a list that is queued as one. It returns list itself if there is
// no transformer.
func (h *handover) prepareList(list []any) ([]any, error) {
	if h.transformer != nil {
		list = slices.Clone(list)
	}
	for i, obj := range list {
		received, err := h.prepare(obj)
		if err != nil {
			return nil, err
		}
		if h.transformer != nil {
			list[i] = received.obj
		}
	}
	return list, nil
}
