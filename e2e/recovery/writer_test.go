// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

const heartbeat = "heartbeat" // the name of the object that holds the newest number

// writer changes the objects of a namespace all the time, over a connection without network faults.
// Beside each change it writes the next number into the heartbeat object.
type writer struct {
	namespace string
	kind      kind
	client    dynamic.ResourceInterface
	names     int           // of objects
	every     time.Duration // between two changes
	timeline  timeline
	churn     sync.Mutex // held: only the heartbeat changes
}

// startWriter creates all objects, and writes until the test ends.
func (w *world) startWriter(namespace string) *writer {
	wr := &writer{
		namespace: namespace,
		kind:      w.kind,
		client:    w.dynamic.Resource(w.kind.resource).Namespace(namespace),
		names:     w.objects,
		every:     w.beatEvery,
	}
	for i := range wr.names {
		_, err := wr.client.Create(w.t.Context(), wr.object(i), metav1.CreateOptions{})
		require.NoError(w.t, err)
	}
	wr.beat(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() { wr.run(w.t.Context()) }) // which ends before Cleanup functions
	w.t.Cleanup(running.Wait)
	return wr
}

func (w *writer) run(ctx context.Context) {
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	for ctx.Err() == nil {
		w.beat(ctx)
		if w.churn.TryLock() {
			w.change(ctx)
			w.churn.Unlock()
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// beat writes the next number. A failed write counts as a change: what the server holds is unknown
// until a later write succeeds.
func (w *writer) beat(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	err := w.put(ctx, w.kind.object(heartbeat, "beat", strconv.Itoa(w.timeline.next())))
	w.timeline.record(time.Now(), err == nil)
}

// change creates, updates or deletes one of the other objects, chosen at random. It may fail:
// etcd has what counts.
func (w *writer) change(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	object := w.object(rand.IntN(w.names))
	if rand.IntN(3) == 0 {
		_ = w.client.Delete(ctx, object.GetName(), metav1.DeleteOptions{})
		return
	}
	_ = w.put(ctx, object)
}

// put creates object or replaces its data.
func (w *writer) put(ctx context.Context, object *unstructured.Unstructured) error {
	patch, err := json.Marshal(map[string]any{"data": object.Object["data"]})
	if err != nil {
		panic(err) // our own strings
	}
	_, err = w.client.Patch(ctx, object.GetName(), types.MergePatchType, patch,
		metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = w.client.Create(ctx, object, metav1.CreateOptions{})
	}
	return err
}

func (w *writer) object(number int) *unstructured.Unstructured {
	return w.kind.object(fmt.Sprintf("object-%d", number), "at",
		time.Now().Format(time.RFC3339Nano))
}

// timeline is the history of the heartbeat: at[n] is when the write of n had succeeded or failed.
type timeline struct {
	mu        sync.Mutex
	at        []time.Time
	succeeded []bool
}

// next returns the number to be written next.
func (l *timeline) next() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.at)
}

// record adds the time of the next number.
func (l *timeline) record(at time.Time, succeeded bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = append(l.at, at)
	l.succeeded = append(l.succeeded, succeeded)
}

// accepted returns when the first write after a time succeeded, or that time if no write has yet.
func (l *timeline) accepted(after time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n, at := range l.at {
		if at.After(after) && l.succeeded[n] {
			return at
		}
	}
	return after
}

// lag returns how long ago a store that holds n missed its first change.
func (l *timeline) lag(n int, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n+1 >= len(l.at) {
		return 0
	}
	return max(0, now.Sub(l.at[n+1]))
}

// isAfter reports whether n was written after at.
func (l *timeline) isAfter(n int, at time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return n >= len(l.at) || l.at[n].After(at)
}
