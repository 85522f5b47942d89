// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/deltafifo"
)

// noBookmarks takes bookmarks, and does not pass them on: the queue may not take any.
type noBookmarks struct{ deltafifo.Queue }

func (noBookmarks) Bookmark(string) error { return nil }

// repeatDeltas makes two deltas of each.
func repeatDeltas(process deltafifo.PopProcessFunc) deltafifo.PopProcessFunc {
	return func(obj any, initial bool) error {
		deltas := obj.(deltafifo.Deltas)
		return process(append(deltas, deltas...), initial)
	}
}

// countingQueue counts what it queues, and does not report what it processes.
type countingQueue struct {
	*foreignQueue
	progress deltafifo.Progress
	count    int
}

func newCountingQueue(o deltafifo.Options) deltafifo.Queue {
	return &countingQueue{newForeignQueue(), o.Progress, 0}
}

func (q *countingQueue) counted(put error) error {
	q.count++
	q.progress.Queued(q.count)
	return put
}

func (q *countingQueue) Add(obj any) error    { return q.counted(q.foreignQueue.Add(obj)) }
func (q *countingQueue) Update(obj any) error { return q.counted(q.foreignQueue.Update(obj)) }
func (q *countingQueue) Delete(obj any) error { return q.counted(q.foreignQueue.Delete(obj)) }

func (q *countingQueue) Replace(list []any, rv string) error {
	return q.counted(q.foreignQueue.Replace(list, rv))
}

// losingQueue loses a change during each of the first lists, before the list is queued.
type losingQueue struct {
	deltafifo.Queue
	lose, listed func(lists int)
	lists        int
}

func (q *losingQueue) Replace(list []any, rv string) error {
	q.lists++
	q.lose(q.lists)
	defer q.listed(q.lists)
	return q.Queue.Replace(list, rv)
}

// A list that was requested before a change was lost does not make the store current, not even for
// the moment until the next list is requested.
func TestCurrentAsOf_LossDuringAList(t *testing.T) {
	var q *losingQueue
	story(t, func(w *world) {
		q.lose = func(lists int) {
			if lists < 3 {
				r := w.ours().(*sharedIndexInformer).reflector.Load()
				r.Relist(errors.New("lost"))
			}
		}
		q.listed = func(lists int) {
			time.Sleep(time.Second) // the consumer has stored the list
			assert.Equal(t, lists < 3, w.health().CurrentAsOf.IsZero())
			assert.Equal(t, lists < 3, w.health().Reflector.CurrentAsOf.IsZero())
		}
		w.start()
		w.after(time.Minute)
		assert.Equal(t, 3, q.lists)
		assert.NoError(t, w.fresh(time.Hour))
	}, bothQueues, withOptions(func(o *Options) {
		q = &losingQueue{}
		o.WrapQueue = func(inner deltafifo.Queue) deltafifo.Queue { q.Queue = inner; return q }
	}))
}
