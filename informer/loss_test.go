// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"example.com/informerstack/deltafifo"
)

func refuseFirst() func() error {
	armed := true
	return once(&armed, func() error { return errors.New("refused") })
}

// A store that refuses a part of the first list has synced with the next one, even when the lists
// have no resourceVersion.
func TestHasSynced_AfterALossWithoutResourceVersions(t *testing.T) {
	for _, rv := range []string{"", "0", "5"} {
		for _, inOrder := range []bool{false, true} {
			t.Run(fmt.Sprintf("%q inOrder=%v", rv, inOrder), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					options := Options{InOrder: inOrder}
					beforeWrites(refuseFirst())(&options)
					s := NewSharedIndexInformer(
						staying(rv, *podAt("a", rv)), &corev1.Pod{}, options)
					defer background(s.Run)()
					time.Sleep(time.Minute)
					require.Len(t, s.GetStore().List(), 1)
					require.True(t, s.HasSynced())
				})
			})
		}
	}
}

// slowQueue is slow after a change was processed, as a metric or a trace of a queue may be.
type slowQueue struct {
	deltafifo.QueueWithBatch
	fails bool
}

func (q *slowQueue) process(p deltafifo.PopProcessFunc) deltafifo.PopProcessFunc {
	return func(obj any, initial bool) error {
		if q.fails {
			q.fails = false
			return errors.New("the wrapper failed")
		}
		err := p(obj, initial)
		if err != nil {
			time.Sleep(10 * time.Second)
		}
		return err
	}
}

func (q *slowQueue) PopBatch(b deltafifo.ProcessBatchFunc, p deltafifo.PopProcessFunc) error {
	return q.QueueWithBatch.PopBatch(b, q.process(p))
}

func (q *slowQueue) Pop(p deltafifo.PopProcessFunc) (any, error) {
	return q.QueueWithBatch.Pop(q.process(p))
}

// A list that arrives between the loss of a change and the end of its processing does not leave the
// version behind for ever; nor does a wrapper that fails by itself lose the list.
func TestLostChange_BetweenQueueAndReflector(t *testing.T) {
	for name, wrapperFails := range map[string]bool{
		"slow after a loss": false, "wrapper fails": true,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				options := Options{InOrder: true,
					WrapQueue: func(q deltafifo.Queue) deltafifo.Queue {
						return &slowQueue{q.(deltafifo.QueueWithBatch), wrapperFails}
					}}
				if !wrapperFails {
					beforeWrites(refuseFirst())(&options)
				}
				s := NewSharedIndexInformer(
					staying("5", *podAt("a", "5")), &corev1.Pod{}, options)
				defer background(s.Run)()
				time.Sleep(10 * time.Minute)
				require.Len(t, s.GetStore().List(), 1)
				require.True(t, s.HasSynced())
				waiting, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				require.NoError(t, s.WaitForResourceVersion(waiting, "5"))
			})
		})
	}
}
