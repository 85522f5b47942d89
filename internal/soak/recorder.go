// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The handlers of a program. The others record and return.
const (
	handlerCount = 20
	enqueuer     = 0 // its view is that of the reconciles
	slow         = 1 // about 100 µs a call
	blocking     = 2 // stops for a good part of the run
	witness      = 3 // shows how far the program is
)

const (
	workerCount   = 16
	reconcileTime = time.Millisecond // the wait for the request that a reconcile of a change makes
	failEvery     = 1000             // one reconcile in so many fails
)

// view is the newest mark of each object that one handler has got.
type view []atomic.Uint64

// recorder records what a program's handlers and reconciles see. Its size does not depend on the
// number of changes. The methods may be called by any number of goroutines.
type recorder struct {
	views      [handlerCount]view
	working    []atomic.Bool // by object: a reconcile runs
	calls      [handlerCount]atomic.Int64
	reconciles atomic.Int64
	duplicates atomic.Int64  // notifications of a version that the handler has
	latency    latencies     // from the write of a version to the first reconcile that reads it
	gate       sync.Mutex    // of the handler that blocks
	newest     atomic.Uint64 // the newest resourceVersion of the witness

	mu       sync.Mutex
	breaches int
	examples []string // of breaches: the first few
}

func newRecorder(names int) *recorder {
	r := &recorder{working: make([]atomic.Bool, names)}
	for i := range r.views {
		r.views[i] = make(view, names)
	}
	return r
}

const maxExamples = 10

func (r *recorder) breach(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.breaches++
	if len(r.examples) < maxExamples {
		r.examples = append(r.examples, fmt.Sprintf(format, args...))
	}
}

// got records a new state, and makes the calls of some handlers take time.
func (r *recorder) got(handler int, version uint64) {
	if handler == witness {
		r.newest.Store(max(r.newest.Load(), version))
	}
	switch n := r.calls[handler].Add(1); {
	case handler == slow && n%16 == 0:
		time.Sleep(time.Millisecond)
	case handler == blocking:
		r.gate.Lock()
		r.gate.Unlock() //nolint:staticcheck // waits while the gate is closed
	}
}

func (r *recorder) added(handler int, obj *corev1.ConfigMap) {
	slot, old := r.views[handler].at(obj.Name)
	now := present(versionOf(obj))
	r.got(handler, now.version())
	if !old.absent() || now.version() <= old.version() {
		r.breach("handler %d: add of %s@%d after %s", handler, obj.Name, now.version(), old)
	}
	slot.Store(uint64(now))
}

func (r *recorder) updated(handler int, obj *corev1.ConfigMap) {
	slot, old := r.views[handler].at(obj.Name)
	now := present(versionOf(obj))
	r.got(handler, now.version())
	switch {
	case old == now:
		r.duplicates.Add(1)
	case old.absent() || now.version() < old.version():
		r.breach("handler %d: update of %s@%d after %s", handler, obj.Name, now.version(), old)
	}
	slot.Store(uint64(now))
}

// removed is called with the last known version; 0 if none is known.
func (r *recorder) removed(handler int, name string, version uint64) {
	slot, old := r.views[handler].at(name)
	r.got(handler, max(version, old.version()))
	if old.absent() || version != 0 && version < old.version() {
		r.breach("handler %d: delete of %s@%d after %s", handler, name, version, old)
	}
	slot.Store(uint64(deleted(max(version, old.version()))))
}

var errOnPurpose = errors.New("fails on purpose")

// reconcile reads the object with get, which is a lister's.
func (r *recorder) reconcile(
	name string, get func(namespace, name string) (*corev1.ConfigMap, error),
) error {
	slot, old := r.views[enqueuer].at(name)
	n := numberOf(name)
	if r.working[n].Swap(true) {
		r.breach("two reconciles of %s at once", name)
	}
	defer r.working[n].Store(false)
	count := r.reconciles.Add(1)
	obj, err := get(namespace, name)
	read := time.Now()
	switch {
	case count%failEvery == 0:
		return errOnPurpose
	case apierrors.IsNotFound(err):
		slot.Store(uint64(deleted(old.version())))
		return nil
	case err != nil:
		return err
	}
	now := present(versionOf(obj))
	if now.version() < old.version() {
		r.breach("reconcile reads %s@%d after %s", name, now.version(), old)
	}
	if now == old {
		return nil
	}
	time.Sleep(reconcileTime)
	if at, err := strconv.ParseInt(obj.Annotations[writtenAt], 10, 64); err == nil {
		r.latency.add(read.Sub(time.Unix(0, at)))
	}
	slot.Store(uint64(now))
	return nil
}

func (v view) at(name string) (*atomic.Uint64, mark) {
	slot := &v[numberOf(name)]
	return slot, mark(slot.Load())
}

// String describes the mark in breaches.
func (m mark) String() string {
	switch {
	case m == 0:
		return "nothing"
	case m.absent():
		return fmt.Sprintf("a delete @%d", m.version())
	}
	return fmt.Sprintf("@%d", m.version())
}

func versionOf(obj *corev1.ConfigMap) uint64 {
	version, err := strconv.ParseUint(obj.ResourceVersion, 10, 64)
	if err != nil {
		panic(fmt.Sprintf("resourceVersion of %s: %v", obj.Name, err))
	}
	return version
}
