// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"example.com/informerstack/deltafifo"
	"example.com/informerstack/store"
)

func object(name string, version int) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ns", Name: name, ResourceVersion: fmt.Sprint(version),
	}}
}

// The record of a queue predicts what every Pop returns, after any operations: Q1, Q2 and Q3.
func TestQueueRecord_EqualsTheQueue(t *testing.T) {
	for _, inOrder := range []bool{false, true} {
		for seed := range uint64(50) {
			checkRecord(t, inOrder, rand.New(rand.NewPCG(seed, 1)))
		}
	}
}

func checkRecord(t *testing.T, inOrder bool, random *rand.Rand) {
	t.Helper()
	known := store.New(store.DeletionHandlingMetaNamespaceKeyFunc, store.Options{})
	record := newQueueRecord(func() store.Store { return known })
	var inner deltafifo.Queue = deltafifo.NewDeltaFIFO(deltafifo.Options{
		KnownObjects: known, EmitDeltaTypeReplaced: true,
	})
	if inOrder {
		inner = deltafifo.NewRealFIFO(deltafifo.Options{
			AtomicEvents: true, UnlockWhileProcessing: true, EmitDeltaTypeBookmark: true,
		})
	}
	queue := recordQueue(inner, record, func(string) bool { return true })
	pop := func() {
		_, _, items := record.content(maxRows, "")
		_, err := queue.Pop(func(obj any, _ bool) error {
			popped := obj.(deltafifo.Deltas)
			key, _ := identity(popped.Newest().Object)
			at := slices.IndexFunc(items, func(i QueueItem) bool { return i.Key == key })
			require.GreaterOrEqual(t, at, 0, "%s is recorded", key)
			require.Len(t, items[at].Deltas, len(popped))
			for i, delta := range popped {
				assert.Equal(t, string(delta.Type), items[at].Deltas[i].Type)
				apply(known, delta)
			}
			if inOrder {
				assert.Zero(t, at, "Q1")
			}
			return nil
		})
		require.NoError(t, err)
	}
	version := 0
	for range 200 {
		version++
		obj := object(fmt.Sprint(random.IntN(5)), version)
		switch random.IntN(8) {
		case 0, 1:
			require.NoError(t, queue.Add(obj))
		case 2:
			require.NoError(t, queue.Update(obj))
		case 3, 4:
			require.NoError(t, queue.Delete(obj))
		case 5:
			require.NoError(t, queue.Replace([]any{obj, object("listed", version)}, "1"))
		case 6:
			require.NoError(t, queue.Resync())
		default:
			if keys, _, _ := record.content(1, ""); keys > 0 {
				pop()
			}
		}
	}
	for keys, _, _ := record.content(1, ""); keys > 0; keys, _, _ = record.content(1, "") {
		pop()
	}
	assert.Zero(t, record.deltas, "Q2")
	assert.Empty(t, record.byKey, "Q3")
	queue.Close()
	_, err := queue.Pop(nil)
	assert.ErrorIs(t, err, deltafifo.ErrFIFOClosed, "the queue is empty too")
}

// apply does to the known objects what an informer does.
func apply(known store.Store, delta deltafifo.Delta) {
	switch info := delta.Object.(type) {
	case deltafifo.ReplacedAllInfo:
		_ = known.Replace(info.Objects, "")
	case deltafifo.SyncAllInfo, deltafifo.BookmarkInfo:
	default:
		if delta.Type == deltafifo.Deleted {
			_ = known.Delete(delta.Object)
		} else {
			_ = known.Add(delta.Object)
		}
	}
}

// The followed key is shown although the list is cut off before it.
func TestQueueRecord_ShowsTheFollowedKey(t *testing.T) {
	record := newQueueRecord(func() store.Store { return nil })
	for i := range 100 {
		record.put(fmt.Sprintf("ns/%03d", i), deltafifo.Added, "1")
	}
	keys, deltas, items := record.content(maxRows, "ns/099")
	assert.Equal(t, 100, keys)
	assert.Equal(t, 100, deltas)
	assert.Len(t, items, maxRows)
	assert.Equal(t, "ns/099", items[maxRows-1].Key)
}
