// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Writes remembers what reconcile wrote, so that the next call for the key does not act on a cache
// without that write: a reconcile that does not find its child creates a second one.
//
//	if !writes.Seen(key, pods.GetStore().LastStoreSyncResourceVersion()) {
//		return controller.Result{RequeueAfter: time.Second}, nil // or the event of the write
//	}
//	...
//	created, err := client.Create(ctx, pod, metav1.CreateOptions{})
//	if err == nil {
//		writes.Wrote(key, created.ResourceVersion)
//	}
//
// A store of package informer reports a version when every change up to it is stored. Versions are
// comparable within one resource only, so a controller needs one Writes for each resource that it
// both writes and reads. If an informer's selector excludes the written object, the informer may
// not see the write until the next bookmark.
//
//	W1  if Seen(k, v) was true since the last Wrote(k, ...), newest[k] is newer than v
//
// The zero value is ready. All methods are safe for concurrent use.
type Writes[K comparable] struct {
	mu     sync.Mutex
	newest map[K]string
}

// Wrote notes that the server answered a create or an update for key with resourceVersion. A text
// that is not a version is ignored.
func (w *Writes[K]) Wrote(key K, resourceVersion string) {
	_, err := resourceversion.CompareResourceVersion(resourceVersion, resourceVersion)
	if err != nil {
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

// Seen reports whether a cache at resourceVersion has seen everything that was written for key. If
// so, the writes are forgotten. "" means a cache that has seen nothing. For any other text that is
// not a version the result is true, because it could never become true later.
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

// Forget drops the writes of key.
func (w *Writes[K]) Forget(key K) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.newest, key)
}

// older reports whether a is known to be older than b.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
