// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"maps"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Writes remembers what reconcile wrote, so that the next call for the key does not act on a cache
// without that write: a reconcile that does not find its child creates a second one.
//
//	if !writes.Seen(key, pods.GetStore().LastStoreSyncResourceVersion()) {
//		return controller.Result{RequeueAfter: time.Second}, nil // or the event of the write
//	}
//	...
//	created, err := controller.Note(&writes, key, client).Create(ctx, pod, metav1.CreateOptions{})
//
// A store of package informer reports a version when every change up to it is stored. Versions are
// comparable within one resource only, so a controller needs one Writes for each resource that it
// both writes and reads. If an informer's selector excludes the written object, the informer may
// not see the write until the next bookmark.
//
// A write of an old copy is refused with a Conflict, and so is every other write of that copy,
// until the watch has brought a newer one. A client that Note returns does not send such a write:
// its error is ErrStale. Patient asks Seen, and waits for the newer copy. Controllers that write
// the same objects share one Writes. Ask Stale before work that makes no sense with an old copy.
//
// In W2 to W5, the facts about an object are forgotten conflictWait after the last answer that
// proves one. A newer copy in the cache does not end them: a slow reconcile may have an old one.
//
//	W1  Seen(k, v) is false if a version newer than v was noted for k since Seen(k, ...) was last
//	    true, or k was forgotten; so it is if k was neither written nor asked for in an hour
//	W2  Stale is true for a copy that was refused with a Conflict, and for older ones
//	W3  Stale is true for a copy that is older than the answer to a write
//	W4  Stale is true for a copy without a deletionTimestamp if a delete was accepted, and for
//	    every copy if an answer shows that the object is gone
//	W5  Send sends no locked write of a copy for which Stale is true, or while another write of
//	    the object is being sent, for at most a minute; and no write at all of a copy that is
//	    stale because of W4
//	W6  dry runs, and errors that prove nothing about the copy, change none of this
//
// The zero value is ready. All methods are safe for concurrent use.
type Writes[K comparable] struct {
	mu     sync.Mutex
	newest map[K]newest
	swept  time.Time // when what is not asked for was dropped from newest
	copies copies
}

// newest is the newest write for a key.
type newest struct {
	version string
	asked   time.Time // when it was written, or asked for last
}

// unasked is after what time a write is forgotten if no caller asks for it.
const unasked = time.Hour

// Wrote notes that the server answered a create or an update for key with resourceVersion. A text
// that is not a version is ignored. Clients that Note returns call it.
func (w *Writes[K]) Wrote(key K, resourceVersion string) {
	if !isVersion(resourceVersion) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wroteLocked(key, resourceVersion)
}

func (w *Writes[K]) wroteLocked(key K, resourceVersion string) {
	now := time.Now()
	if now.Sub(w.swept) >= unasked {
		maps.DeleteFunc(w.newest, func(_ K, n newest) bool { return now.Sub(n.asked) >= unasked })
		w.swept = now
	}
	if before, ok := w.newest[key]; ok && !older(before.version, resourceVersion) {
		return
	}
	if w.newest == nil {
		w.newest = map[K]newest{}
	}
	w.newest[key] = newest{resourceVersion, now}
}

// Seen reports whether a cache at resourceVersion has seen everything that was written for key. If
// so, the writes are forgotten. "" means a cache that has seen nothing. For any other text that is
// not a version the result is true, because it could never become true later.
func (w *Writes[K]) Seen(key K, resourceVersion string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	written, ok := w.newest[key]
	if ok && (resourceVersion == "" || older(resourceVersion, written.version)) {
		written.asked = time.Now()
		w.newest[key] = written
		return false
	}
	delete(w.newest, key)
	return true
}

// SeenBy returns Seen for a store of package informer. The result is for Patient.
func (w *Writes[K]) SeenBy(
	cache interface{ LastStoreSyncResourceVersion() string },
) func(key K) bool {
	return func(key K) bool { return w.Seen(key, cache.LastStoreSyncResourceVersion()) }
}

// Forget drops the writes of key.
func (w *Writes[K]) Forget(key K) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.newest, key)
}

// Conflicted notes that the server refused a write of the copy obj with an error for which
// apierrors.IsConflict is true. Clients that Note returns call it.
func (w *Writes[K]) Conflicted(obj metav1.Object) {
	id, version, now := identityOf(obj), obj.GetResourceVersion(), time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.copies.at(id, now).learn(version, true)
}

// Stale reports whether obj is known to be older than what the server has. A minute after the last
// answer about the object it is false in any case: a server may refuse a write for another reason.
func (w *Writes[K]) Stale(obj metav1.Object) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.copies.stale(obj, time.Now())
}

// Write is a write that Send sends.
type Write struct {
	// Copy is what the write was made from. For a create, it has no UID.
	Copy metav1.Object
	// Locked means that the server refuses the write with a Conflict if Copy is not the newest.
	Locked bool
	// Deletes means that the write is a delete, without an answer.
	Deletes bool
}

// Send sends one write for key with send, which returns the object that the server answers with.
// It notes the answer, and returns the error. If the write is not sent, because of W5, the error
// is ErrStale. If it was refused because Copy is old, the error is ErrStale and a Conflict. Do not
// pass dry runs to it.
func (w *Writes[K]) Send(key K, write Write, send func() (metav1.Object, error)) error {
	// The client may store the answer in Copy.
	id, version := identityOf(write.Copy), write.Copy.GetResourceVersion()
	w.mu.Lock()
	err := w.copies.begin(write, time.Now())
	w.mu.Unlock()
	if err != nil {
		return err
	}
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.copies.objects[id].sending--
	}()
	answer, err := send()
	now := time.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil && write.Deletes:
		w.copies.deleted(id, now)
	case err == nil:
		if isVersion(answer.GetResourceVersion()) {
			w.wroteLocked(key, answer.GetResourceVersion())
		}
		w.copies.answered(answer, now)
	case write.Locked && isOld(err, id):
		w.copies.at(id, now).learn(version, true)
		return &staleError{err}
	}
	return err
}
