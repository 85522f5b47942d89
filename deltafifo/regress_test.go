// SPDX-License-Identifier: Apache-2.0

package deltafifo

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubernetes/kubernetes#90825: Close may race with a Pop that is about to block.
func TestRegress_90825_CloseWakesPop(t *testing.T) {
	for name, k := range map[string]kind{"deltafifo": {}, "realfifo": {real: true, atomic: true}} {
		t.Run(name, func(t *testing.T) {
			for range 1000 {
				w := newWorld(t, ours, k)
				popped := make(chan string)
				go func() { popped <- w.pop() }()
				w.queue.Close()
				require.Equal(t, "closed", <-popped)
			}
		})
	}
}

// kubernetes/kubernetes#26966: a delete is delivered whether its object is queued or was popped
// before. The delete of an unknown object is dropped.
func TestRegress_26966_DeleteAfterPop(t *testing.T) {
	both(t, kind{known: true, replaced: true}, func(t *testing.T, w *world) {
		w.do(op("added", "ns/a@1"))
		w.pop()
		w.do(op("deleted", "ns/a@2"), op("deleted", "ns/b@2"))
		require.Equal(t, "ns/a: deleted@2", w.pop())
		w.queue.Close()
		require.Equal(t, "closed", w.pop())
	})
}

// kubernetes/kubernetes#32125: a resync does not queue a known object behind a newer update.
func TestRegress_32125_ResyncAfterUpdate(t *testing.T) {
	for name, k := range map[string]kind{
		"deltafifo": {known: true}, "realfifo": {real: true, known: true},
	} {
		t.Run(name, func(t *testing.T) {
			both(t, k, func(t *testing.T, w *world) {
				w.known.set(object("ns/a", "1"))
				w.do(op("updated", "ns/a@2"), op("resync"))
				require.Equal(t, "ns/a: updated@2", w.pop())
				w.queue.Close()
				require.Equal(t, "closed", w.pop())
			})
		})
	}
}

// kubernetes/kubernetes#124344: each received object is transformed once. Objects that a resync
// replays are not transformed, because others read them.
func TestRegress_124344_TransformOnce(t *testing.T) {
	for name, k := range map[string]kind{
		"deltafifo": {known: true, replaced: true, transform: true},
		"realfifo":  {real: true, known: true, transform: true},
		"atomic":    {real: true, atomic: true, unlock: true, transform: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, ours, k)
				var others sync.WaitGroup
				others.Go(func() {
					for range 200 {
						time.Sleep(5 * time.Millisecond)
						w.queue.Resync()
					}
					w.queue.Close()
				})
				others.Go(func() {
					for {
						_, err := w.queue.Pop(func(obj any, _ bool) error {
							for _, d := range obj.(Deltas) {
								requireTransformedOnce(t, d.Object)
								w.known.apply(d)
							}
							return nil
						})
						if err != nil {
							return
						}
					}
				})
				others.Go(func() {
					for range 100 {
						for _, obj := range objects("ns/a@1", "ns/b@1") {
							require.NoError(t, w.queue.Update(obj))
						}
						require.NoError(t, w.queue.Replace(objects("ns/a@1", "ns/c@1"), ""))
						time.Sleep(10 * time.Millisecond)
					}
				})
				others.Wait()
			})
		})
	}
}

func requireTransformedOnce(t *testing.T, obj any) {
	switch o := obj.(type) {
	case *metav1.PartialObjectMetadata:
		require.Equal(t, "1t", o.ResourceVersion)
	case ReplacedAllInfo:
		for _, listed := range o.Objects {
			requireTransformedOnce(t, listed)
		}
	}
}

// kubernetes/kubernetes#135462: a batch of one is delivered as by Pop, and an error loses only its
// batch.
func TestRegress_135462_BatchOfOne(t *testing.T) {
	both(t, kind{real: true, atomic: true}, func(t *testing.T, w *world) {
		w.do(op("added", "ns/a@1"), op("added", "ns/a@2"), op("added", "ns/b@3"),
			op("added", "ns/b@4"))
		require.Equal(t, "single ns/a: added@1", w.popBatch())
		failure := errors.New("process failed")
		err := w.queue.PopBatch(func([]Delta, bool) error { return failure }, nil)
		require.ErrorIs(t, err, failure)
		require.Equal(t, "single ns/b: added@4", w.popBatch())
	})
}
