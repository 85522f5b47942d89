// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Writes remembers what reconcile wrote, so that the next call for the key does not act on a cache that has not seen it yet:
// one that holds no child creates a second.
//
//	if !writes.Seen(key, pods.LastStoreSyncResourceVersion()) {
//		return controller.Result{RequeueAfter: time.Second}, nil // or sooner, with the event of the write
//	}
//	...
//	created, err := client.Create(ctx, pod, metav1.CreateOptions{})
//	if err == nil {
//		writes.Wrote(key, created.ResourceVersion)
//	}
//
// Versions are comparable within one resource only, so a controller needs one Writes for each resource that it both writes
// and reads. An informer with a selector may have to wait for the next bookmark to have seen a write that it does not select.
//
//	W1  newest[k] is newer than every version with which Seen(k, version) was true since the last Wrote(k, ...).
//
// The zero value is ready. All methods are safe for concurrent use.
type Writes[K comparable] struct {
	mu     sync.Mutex
	newest map[K]string
}

// Wrote notes that the server answered a create or an update for key with resourceVersion. One that is no version is ignored.
func (w *Writes[K]) Wrote(key K, resourceVersion string) {
	if _, err := resourceversion.CompareResourceVersion(resourceVersion, resourceVersion); err != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if before, ok := w.newest[key]; ok && !older(before, resourceVersion) {
		return
	}
	if w.newest == nil {
		w.newest = map[K]string{}
	}
	w.newest[key] = resourceVersion
}

// Seen tells whether a cache that is as new as resourceVersion has seen all that was written for key. If so, the writes are
// forgotten. "" is a cache that has seen nothing; of any other text that is no version nothing can be told, and the answer is
// true rather than for ever false.
func (w *Writes[K]) Seen(key K, resourceVersion string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	written, ok := w.newest[key]
	if ok && (resourceVersion == "" || older(resourceVersion, written)) {
		return false
	}
	delete(w.newest, key)
	return true
}

// Forget drops what was noted for key.
func (w *Writes[K]) Forget(key K) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.newest, key)
}

// older tells whether a is known to be older than b.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
