// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/controller"
	"example.com/informerstack/workqueue"
)

// copyWait is how long a key waits that needs a newer copy, unless an event adds it before.
const copyWait = 2 * time.Second

// Writes returns what notes the writes of the workers of the pipeline that is built, or nil without
// Settings.Noted. With it, Reconcile waits for the writes, and for a newer copy. Call it before
// Reconcile, once per pipeline.
func (l *Lab) Writes() *controller.Writes[string] {
	var writes *controller.Writes[string]
	if l.restarts.get().Noted {
		writes = &controller.Writes[string]{}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.writes = writes
	return writes
}

// patient returns a reconcile function that waits as Writes says.
func (l *Lab) patient(next controller.ReconcileFunc[string]) controller.ReconcileFunc[string] {
	l.mu.Lock()
	writes := l.writes
	l.mu.Unlock()
	if writes == nil {
		return next
	}
	return controller.Patient(copyWait, next, func(key string) bool {
		return writes.SeenBy(l.known())(key)
	})
}

// staleCopies returns the version of the stored copy of each delayed key that is known to be old.
func (l *Lab) staleCopies(delayed []workqueue.Waiting[string]) map[string]string {
	l.mu.Lock()
	writes := l.writes
	l.mu.Unlock()
	objects := l.known()
	if writes == nil || objects == nil {
		return nil
	}
	stale := map[string]string{}
	for _, w := range delayed[:min(len(delayed), maxRows)] {
		obj, _, _ := objects.GetByKey(w.Item)
		if m, ok := obj.(metav1.Object); ok && writes.Stale(m) {
			stale[w.Item] = m.GetResourceVersion()
		}
	}
	return stale
}
