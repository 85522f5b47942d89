// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/store"
)

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// barrierQueue is what both queues have for this test.
type barrierQueue interface {
	Queue
	Processed() <-chan struct{}
	checkLaws(t testing.TB)
}

func barrierQueues() map[string]barrierQueue {
	return map[string]barrierQueue{
		"DeltaFIFO": NewDeltaFIFO(DeltaFIFOOptions{KnownObjects: store.New(store.MetaNamespaceKeyFunc)}),
		"RealFIFO":  NewRealFIFO(RealFIFOOptions{AtomicEvents: true, UnlockWhileProcessing: true}),
	}
}

func named(name, resourceVersion string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: resourceVersion}}
}

func TestProcessed_ClosesWhenWhatWasQueuedIsThrough(t *testing.T) {
	for name, q := range barrierQueues() {
		t.Run(name, func(t *testing.T) {
			consume := func(result error) {
				_, err := q.Pop(func(any, bool) error { return result })
				require.Equal(t, result, err)
				q.checkLaws(t)
			}
			assert.True(t, isClosed(q.Processed()), "nothing is queued")

			require.NoError(t, q.Add(named("a", "1")))
			require.NoError(t, q.Add(named("b", "2")))
			both := q.Processed()
			require.NoError(t, q.Add(named("c", "3")))
			all := q.Processed()
			consume(nil)
			assert.False(t, isClosed(both))
			consume(errors.New("refused")) // processed, even so
			assert.True(t, isClosed(both))
			assert.False(t, isClosed(all))
			consume(nil)
			assert.True(t, isClosed(all))
			assert.True(t, isClosed(q.Processed()))
		})
	}
}

// The newest of what was processed says nothing: b@2 comes after a@3.
func TestProcessed_DeltaFIFOKeepsTheOrderOfKeys(t *testing.T) {
	q := NewDeltaFIFO(DeltaFIFOOptions{})
	for _, obj := range []*corev1.ConfigMap{named("a", "1"), named("b", "2"), named("a", "3")} {
		require.NoError(t, q.Add(obj))
	}
	through := q.Processed()
	_, err := q.Pop(func(obj any, _ bool) error {
		assert.Equal(t, named("a", "3"), obj.(Deltas).Newest().Object)
		return nil
	})
	require.NoError(t, err)
	assert.False(t, isClosed(through))
	_, err = q.Pop(func(any, bool) error { return nil })
	require.NoError(t, err)
	assert.True(t, isClosed(through))
}

// What is being processed has not been processed.
func TestProcessed_WaitsForWhatIsBeingProcessed(t *testing.T) {
	q := NewRealFIFO(RealFIFOOptions{AtomicEvents: true, UnlockWhileProcessing: true})
	require.NoError(t, q.Add(named("a", "1")))
	require.NoError(t, q.Add(named("b", "2")))
	var during <-chan struct{}
	require.NoError(t, q.PopBatch(func(deltas []Delta, _ bool) error {
		require.Len(t, deltas, 2)
		during = q.Processed()
		assert.False(t, isClosed(during))
		return nil
	}, nil))
	assert.True(t, isClosed(during))
}

func TestProcessed_PanicCountsAsProcessed(t *testing.T) {
	for name, q := range barrierQueues() {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, q.Add(named("a", "1")))
			through := q.Processed()
			assert.Panics(t, func() { _, _ = q.Pop(func(any, bool) error { panic("broken") }) })
			assert.True(t, isClosed(through))
			q.checkLaws(t)
		})
	}
}
