// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/workqueue"
)

// One moment with a key in every state that there is.
func TestSnapshot(t *testing.T) {
	story(t, Options[string]{Workers: 2}, func(w *world) {
		w.answers("fails", "error", "error", "error")
		w.answers("later", "after 1h")
		w.answers("dead", "terminal")
		w.answers("first", "hold")
		w.answers("second", "hold")
		w.run()
		w.change("fails", "later", "dead")
		w.after(time.Second)
		w.change("first")
		w.after(500 * time.Millisecond)
		w.change("second", "queued")

		s := w.c.Snapshot()
		assert.Equal(t, PhaseRunning, s.Phase)
		assert.Equal(t, 1, s.Queued)
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
		assert.Equal(t, 1, s.DeadLetters)
		assert.Equal(t, map[Outcome]uint64{OutcomeError: 3, OutcomeRequeueAfter: 1}, s.Outcomes)
		w.release("first")
		w.release("second")
	})
}
