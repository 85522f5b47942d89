// SPDX-License-Identifier: Apache-2.0

package recovery

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
)

const (
	heartbeat = "heartbeat"            // the name of the object that holds the newest number
	beatEvery = 200 * time.Millisecond // the time between two numbers
	nameCount = 30                     // of the other objects
)

// writer changes a collection all the time, over a connection without network faults. Beside each
// change it writes the next number into the heartbeat object.
type writer struct {
	configMaps typedcorev1.ConfigMapInterface
	timeline   timeline
	churn      sync.Mutex // held: only the heartbeat changes
}

// startWriter creates the heartbeat object, and writes until the test ends.
func startWriter(t *testing.T, configMaps typedcorev1.ConfigMapInterface) *writer {
	w := &writer{configMaps: configMaps}
	_, err := configMaps.Create(t.Context(), beatOf(w.timeline.next()), metav1.CreateOptions{})
	require.NoError(t, err)
	w.timeline.record(time.Now())
	var running sync.WaitGroup
	running.Go(func() { w.run(t.Context()) }) // which ends before Cleanup functions run
	t.Cleanup(running.Wait)
	return w
}

func (w *writer) run(ctx context.Context) {
	ticker := time.NewTicker(beatEvery)
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
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_, _ = w.configMaps.Update(ctx, beatOf(w.timeline.next()), metav1.UpdateOptions{})
	w.timeline.record(time.Now())
}

func beatOf(n int) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: heartbeat},
		Data:       map[string]string{"beat": strconv.Itoa(n)},
	}
}

// change creates, updates or deletes one of the other objects, chosen at random. It may fail:
// collection reads what the server holds.
func (w *writer) change(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	object := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("object-%d", rand.IntN(nameCount))},
		Data:       map[string]string{"at": time.Now().Format(time.RFC3339Nano)},
	}
	if rand.IntN(3) == 0 {
		_ = w.configMaps.Delete(ctx, object.Name, metav1.DeleteOptions{})
		return
	}
	_, err := w.configMaps.Create(ctx, object, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, _ = w.configMaps.Update(ctx, object, metav1.UpdateOptions{})
	}
}

// collection returns what the server holds now, without the heartbeat. The caller holds churn.
func (w *writer) collection(ctx context.Context) (map[string]uint64, error) {
	list, err := w.configMaps.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	collection := map[string]uint64{}
	for i := range list.Items {
		if name, version := identify(&list.Items[i]); name != heartbeat {
			collection[name] = version
		}
	}
	return collection, nil
}

// timeline is the history of the heartbeat: at[n] is when the write of n had succeeded or failed.
type timeline struct {
	mu sync.Mutex
	at []time.Time
}

// next returns the number to be written next.
func (l *timeline) next() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.at)
}

// record adds the time of the next number.
func (l *timeline) record(at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = append(l.at, at)
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
