// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/workqueue"
)

// One moment with a key in every state that there is. A Status has the numbers of a Snapshot.
func TestSnapshot(t *testing.T) {
	story(t, Options[string]{Workers: 2, DeadLetterCapacity: 1}, func(w *world) {
		assert.Equal(t, Status{Name: "story", Phase: PhaseNew}, w.c.Status())
		w.answers("fails", "error", "error", "error")
		w.answers("later", "after 1h")
		w.answers("dead", "terminal")
		w.answers("dead too", "terminal")
		w.answers("first", "hold")
		w.answers("second", "hold")
		w.change("fails", "later", "dead", "dead too")
		assert.Equal(t, Status{Name: "story", Phase: PhaseNew, Queued: 4}, w.c.Status())
		assert.Equal(t, []string{"fails", "later", "dead", "dead too"}, w.c.Snapshot().Ready)
		w.run()
		w.after(time.Second)
		w.change("first")
		w.after(500 * time.Millisecond)
		w.change("second", "queued")

		s := w.c.Snapshot()
		want := Status{Name: "story", Phase: PhaseRunning, Queued: 1, Running: 2, Failing: 1,
			DeadLetters: 1, Evicted: 1}
		assert.Equal(t, want, w.c.Status())
		assert.Equal(t, want, s.Status)
		assert.Equal(t, []string{"queued"}, s.Ready)
		at := func(d time.Duration) time.Time { return w.start.Add(d) }
		assert.Equal(t, []workqueue.Waiting[string]{
			{Item: "fails", Due: at(3 * time.Second), Failures: 2},
			{Item: "later", Due: at(time.Hour)},
		}, s.Waiting)
		assert.Equal(t, 1, s.Limited)
		require.Len(t, s.Running, 2)
		assert.Equal(t, "first", s.Running[0].Key)
		assert.Equal(t, at(time.Second), s.Running[0].Since)
		assert.Equal(t, "second", s.Running[1].Key)
		assert.Equal(t, []FailedKey[string]{{
			Key: "fails", Attempts: 2,
			First: Failure{errBoom, at(0)}, Last: Failure{errBoom, at(time.Second)},
		}}, s.Failing)
		assert.Equal(t, map[Outcome]uint64{OutcomeError: 4, OutcomeRequeueAfter: 1}, s.Outcomes)
		w.stop()
		assert.Equal(t, PhaseStopped, w.c.Status().Phase)
		assert.Zero(t, w.c.Status().Running)
	})
}

// A part has the first keys of each list, or those that match, and the lengths of the whole lists.
func TestSnapshot_Part(t *testing.T) {
	story(t, Options[string]{Workers: 2}, func(w *world) {
		w.answers("hangs", "hold")
		w.answers("hangs too", "hold")
		for _, key := range []string{"fails", "fails too", "fails last"} {
			w.answers(key, "error", "error", "error", "error", "error")
		}
		w.answers("later", "after 1h")
		w.run()
		for _, key := range []string{"fails", "fails too", "fails last", "later"} {
			w.change(key)
			w.after(time.Nanosecond)
		}
		w.change("hangs", "hangs too")
		w.after(time.Nanosecond)
		w.change("a", "b", "c")
		w.after(time.Nanosecond)
		whole := w.c.Snapshot()
		require.Len(t, whole.Ready, 3)
		require.Len(t, whole.Waiting, 4)
		require.Len(t, whole.Failing, 3)
		for limit := range 5 {
			p := w.c.SnapshotOf(0, limit)
			assert.Equal(t, whole.Status, p.Status)
			assert.Equal(t, workqueue.Totals{Ready: 3, Processing: 2, Waiting: 4}, p.Total)
			assert.Len(t, p.Running, 2)
			assert.ElementsMatch(t, whole.Ready[:min(limit, 3)], p.Ready)
			assert.Len(t, p.Numbers, min(limit, 3))
			assert.ElementsMatch(t, whole.Waiting[:limit], p.Waiting)
			assert.ElementsMatch(t, whole.Failing[:min(limit, 3)], p.Failing)
			p = w.c.SnapshotOf(limit, 1)
			assert.Equal(t, workqueue.Totals{Ready: 3, Processing: 2, Waiting: 4}, p.Total)
			assert.Equal(t, whole.Waiting[3].Due, p.LastDue)
			assert.Len(t, p.Running, 2)
			assert.ElementsMatch(t, whole.Ready[min(limit, 3):min(limit+1, 3)], p.Ready)
			assert.ElementsMatch(t, whole.Waiting[min(limit, 4):min(limit+1, 4)], p.Waiting)
			assert.ElementsMatch(t, whole.Failing[min(limit, 3):min(limit+1, 3)], p.Failing)
		}
		for _, key := range []string{"b", "fails too", "hangs", "later", "no"} {
			p := w.c.Find(func(other string) bool { return other == key })
			assert.Equal(t, whole.Status, p.Status)
			assert.Equal(t, workqueue.Totals{Ready: 3, Processing: 2, Waiting: 4}, p.Total)
			assert.Len(t, p.Running, 2)
			if key == "b" {
				assert.Equal(t, []string{"b"}, p.Ready)
				assert.Equal(t, []int{2}, p.Numbers)
			}
			for _, w := range p.Waiting {
				assert.Equal(t, key, w.Item)
			}
			waits := key == "fails too" || key == "later"
			assert.Equal(t, waits, len(p.Waiting) == 1)
			assert.Equal(t, key == "fails too", len(p.Failing) == 1)
		}
		w.stop()
	})
}
