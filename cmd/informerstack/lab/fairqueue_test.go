// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/observe/trace"
)

// flood lets one worker hang with batch/job-0. Then batch/job-1 to batch/job-n are queued, and
// default/a.
func (w *world) flood(n int, fair bool) {
	w.mustDo(`{"do":"settings","workers":1,"fair":%t}`, fair)
	w.after(expectTimeout)
	w.mustDo(`{"do":"reconcile","fault":"hang"}`)
	for i := range n + 1 {
		w.mustDo(`{"do":"create","key":"batch/job-%d"}`, i)
	}
	w.mustDo(`{"do":"change","key":"default/a"}`)
}

// The page shows the keys in the order in which workers get them, and holds the next one.
func TestWorkqueue_ShowsItsOrder(t *testing.T) {
	for _, c := range []struct {
		fair bool
		want []string
	}{
		{false, []string{"batch/job-1", "batch/job-2", "batch/job-3", "default/a"}},
		{true, []string{"batch/job-1", "default/a", "batch/job-2", "batch/job-3"}},
	} {
		chapter(t, fmt.Sprint("fair=", c.fair), func(t *testing.T, w *world) {
			w.flood(3, c.fair)
			q := w.frame().Workqueue
			assert.Equal(t, c.want, q.Queue)
			assert.Equal(t, []string{"batch/job-0"}, q.Processing)
			assert.Empty(t, q.Priorities)
			if c.fair {
				assert.Equal(t, []GroupView{{"batch", 3, 1}, {"default", 1, 0}}, q.Groups)
				assert.Equal(t, 2, q.GroupsTotal)
			} else {
				assert.Empty(t, q.Groups)
			}

			w.mustDo(`{"do":"mode","mode":"pause"}`)
			w.mustDo(`{"do":"reconcile","fault":"none"}`)
			var held []string
			for range 40 {
				f := w.frame()
				if len(f.Held) == 0 {
					break
				}
				next := f.Held[0]
				w.mustDo(`{"do":"step"}`)
				if next.Hop == string(trace.Workqueue) && next.What == "Get" {
					held = append(held, next.Key)
					hops := w.frame().Hops
					assert.Equal(t, "Get", hops[len(hops)-1].What)
					assert.Equal(t, next.Key, hops[len(hops)-1].Key)
				}
			}
			assert.Equal(t, c.want, held)
		})
	}
}

// With a fair queue, the initial list has a low priority, and a change has 0. A held key that is
// overtaken is not handed out.
func TestWorkqueue_AChangeOvertakesTheInitialList(t *testing.T) {
	story(t, func(w *world) {
		w.flood(2, true)
		w.mustDo(`{"do":"restart"}`)
		w.after(expectTimeout)
		f := w.frame()
		require.Len(t, f.Workqueue.Queue, 4)
		for _, key := range f.Workqueue.Queue {
			assert.Equal(t, LowPriority, f.Workqueue.Priorities[key], key)
		}
		w.mustDo(`{"do":"mode","mode":"pause"}`)
		w.mustDo(`{"do":"reconcile","fault":"none"}`)
		for w.frame().Held[0].What != "Done" {
			w.mustDo(`{"do":"step"}`)
		}
		go w.lab.enqueue("default/b")
		w.after(0)
		w.mustDo(`{"do":"step"}`)
		f = w.frame()
		require.Len(t, f.Held, 2)
		assert.Equal(t, HeldHop{Hop: "workqueue", What: "Add", Key: "default/b"}, f.Held[0])
		assert.Equal(t, "Get", f.Held[1].What)
		assert.NotEqual(t, "default/b", f.Held[1].Key)
		w.mustDo(`{"do":"step"}`)
		w.mustDo(`{"do":"step"}`)
		f = w.frame()
		assert.Equal(t, "default/b", f.Workqueue.Queue[0])
		assert.Equal(t, []HeldHop{{Hop: "workqueue", What: "Get", Key: "default/b"}}, f.Held)
		w.mustDo(`{"do":"step"}`)
		assert.Equal(t, []string{"default/b"}, w.frame().Workqueue.Processing)
	})
}

// The changes of the code, ShutDown and the limiters work with a fair queue, too.
func TestWorkqueue_FairIsAQueueLikeTheOther(t *testing.T) {
	story(t, func(w *world) {
		w.mustDo(`{"do":"settings","fair":true}`)
		w.after(expectTimeout)
		assert.True(t, w.frame().Settings.Fair)
		w.mustDo(`{"do":"reconcile","fault":"fail"}`)
		w.mustDo(`{"do":"change","key":"default/a"}`)
		w.after(100 * time.Millisecond)
		assert.Equal(t, "default/a", w.frame().Workqueue.Requeues[0].Key)
		assert.NotEmpty(t, w.frame().Workqueue.Delayed)
		w.mustDo(`{"do":"code","id":"add","on":true}`)
		w.after(expectTimeout)
		assert.Empty(t, w.frame().Workqueue.Delayed, "a failed key is added at once")
		assert.Zero(t, w.frame().Workers.DeadLettersTotal)
		w.mustDo(`{"do":"code","id":"add","on":false}`)
		w.mustDo(`{"do":"reconcile","fault":"none"}`)
		w.after(expectTimeout)
		w.mustDo(`{"do":"code","id":"done","on":true}`)
		w.mustDo(`{"do":"change","key":"default/a"}`)
		w.after(expectTimeout)
		assert.Equal(t, []string{"default/a"}, w.frame().Code.Undone)
		w.mustDo(`{"do":"code","id":"done","on":false}`)
		w.after(expectTimeout)
		assert.Empty(t, w.frame().Workqueue.Processing)
		w.mustDo(`{"do":"shutdown"}`)
		w.mustDo(`{"do":"change","key":"default/b"}`)
		w.after(expectTimeout)
		f := w.frame()
		assert.Equal(t, 2, f.Workers.Ended)
		assert.Equal(t, 1, f.Workqueue.ShutDown.Refused)
		w.mustDo(`{"do":"restart"}`)
		w.after(expectTimeout)
		assert.Empty(t, w.lab.moving(w.frame()))
	})
}
