// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
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
// A write of a stale copy is refused with a Conflict, and so is every other write of that copy,
// until the watch has brought a newer one. To wait for it, report the refusal, and ask before the
// next write of a copy:
//
//	if writes.Stale(pod) {
//		return controller.Result{RequeueAfter: time.Second}, nil // an event may come earlier
//	}
//	...
//	if apierrors.IsConflict(err) {
//		writes.Conflicted(pod)
//		return controller.Result{RequeueAfter: time.Second}, nil
//	}
//
//	W1  if Seen(k, v) was true since the last Wrote(k, ...), newest[k] is newer than v
//	W2  refused has the newest refused version of an object for conflictWait after the last
//	    refusal, or until Stale was called with a newer one
//
// The zero value is ready. All methods are safe for concurrent use.
type Writes[K comparable] struct {
	mu      sync.Mutex
	newest  map[K]string
	refused map[identity]refusal
	swept   time.Time // when old refusals were dropped
}

// identity distinguishes an object from its successor of the same name. (A fake server may not set
// UIDs.)
type identity struct {
	uid             types.UID
	namespace, name string
}

type refusal struct {
	resourceVersion string
	at              time.Time // of the call of Conflicted
}

// conflictWait bounds the wait for a copy that is newer than a refused one. A server may refuse a
// write for another reason, such as a webhook or too many writers; then no newer copy arrives.
const conflictWait = time.Minute

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

// Conflicted notes that the server refused a write of the copy obj with an error for which
// apierrors.IsConflict is true.
func (w *Writes[K]) Conflicted(obj metav1.Object) {
	now, id, version := time.Now(), identityOf(obj), obj.GetResourceVersion()
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.swept) >= conflictWait {
		maps.DeleteFunc(w.refused, func(_ identity, r refusal) bool { return r.over(now) })
		w.swept = now
	}
	if before, ok := w.refused[id]; ok && !before.over(now) &&
		older(version, before.resourceVersion) {
		version = before.resourceVersion
	}
	if w.refused == nil {
		w.refused = map[identity]refusal{}
	}
	w.refused[id] = refusal{version, now}
}

// Stale reports whether obj is the copy that Conflicted was called with, or an older one of the
// same object. A minute after Conflicted it is false in any case: a server may refuse a write for
// another reason.
func (w *Writes[K]) Stale(obj metav1.Object) bool {
	id, version := identityOf(obj), obj.GetResourceVersion()
	w.mu.Lock()
	defer w.mu.Unlock()
	r, ok := w.refused[id]
	switch {
	case !ok:
		return false
	case r.over(time.Now()), version != r.resourceVersion && !older(version, r.resourceVersion):
		delete(w.refused, id)
		return false
	}
	return true
}

func (r refusal) over(now time.Time) bool { return now.Sub(r.at) >= conflictWait }

func identityOf(obj metav1.Object) identity {
	return identity{obj.GetUID(), obj.GetNamespace(), obj.GetName()}
}

// older reports whether a is known to be older than b.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
