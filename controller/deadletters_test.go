// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// After MaxAttempts failures the key becomes a dead letter, which remembers the first and the last
// error, and rests until it changes.
func TestStory_ExhaustedKeyBecomesDeadLetter(t *testing.T) {
	story(t, Options[string]{MaxAttempts: 3}, func(w *world) {
		w.fails("a", 3)
		w.run()
		w.change("a")
		w.after(time.Hour)
		w.workerSaw("a: error", "a: error", "a: error")
		w.deadLetters("a MaxAttempts 3")
		w.limiterCounts("a", 0)

		letter, ok := w.c.DeadLetters().Get("a")
		require.True(t, ok)
		assert.ErrorIs(t, letter.First.Err, errBoom)
		assert.Equal(t, w.start, letter.First.Time)
		assert.Equal(t, w.start.Add(3*time.Second), letter.Last.Time)
	})
}

// The object changes: the dead letter is an ordinary key again, with all its attempts before it.
func TestStory_ChangeRevivesDeadLetter(t *testing.T) {
	story(t, Options[string]{MaxAttempts: 2}, func(w *world) {
		w.fails("a", 3)
		w.run()
		w.change("a")
		w.after(time.Minute)
		w.deadLetters("a MaxAttempts 2")
		w.workerSaw("a: error", "a: error")

		w.change("a")
		w.deadLetters()
		w.workerSaw("a: error")
		w.after(time.Second)
		w.workerSaw("a: ok")
		w.deadLetters()
	})
}

// A change during the last attempt: the attempt saw an older state, so the key is not given up.
func TestStory_ChangeDuringLastAttemptIsNotLost(t *testing.T) {
	for _, last := range []string{"hold then error", "hold then terminal"} {
		t.Run(last, func(t *testing.T) {
			story(t, Options[string]{MaxAttempts: 1}, func(w *world) {
				w.answers("a", last)
				w.run()
				w.change("a")
				w.change("a")
				w.release("a")
				w.deadLetters()
				w.workerSaw("a: "+last, "a: ok")
			})
		})
	}
}

// A resync shows the handler an object that did not change. That wakes no dead letter, and counts
// no attempt anew.
func TestStory_ResyncLeavesDeadLettersAlone(t *testing.T) {
	story(t, Options[string]{MaxAttempts: 2}, func(w *world) {
		w.fails("a", 2)
		w.run()
		w.change("a")
		w.workerSaw("a: error")
		w.resync("a")
		w.settle()
		w.workerSaw("a: error")
		w.deadLetters("a MaxAttempts 2")
		w.resync("a")
		w.resync("b")
		w.after(time.Hour)
		w.workerSaw("b: ok")
		w.deadLetters("a MaxAttempts 2")
	})
}

// A delay from before the key was given up ends: the dead letter is not reconciled.
func TestStory_OldDelayDoesNotWakeDeadLetter(t *testing.T) {
	story(t, Options[string]{MaxAttempts: 9}, func(w *world) {
		w.answers("a", "after 1m", "terminal")
		w.run()
		w.change("a")
		w.change("a")
		w.workerSaw("a: after 1m", "a: terminal")
		w.after(time.Hour)
		w.workerSaw()
		w.deadLetters("a Terminal 1")
	})
}

// Without a maximum of attempts changes are not noted, so such a delay may be one.
func TestStory_WithoutAMaximumAnOldDelayWakesADeadLetter(t *testing.T) {
	story(t, Options[string]{}, func(w *world) {
		w.answers("a", "after 1m", "terminal", "terminal")
		w.run()
		w.change("a")
		w.change("a")
		w.resync("a")
		w.settle()
		w.workerSaw("a: after 1m", "a: terminal")
		w.deadLetters("a Terminal 1")
		w.after(time.Hour)
		w.workerSaw("a: terminal")
		w.deadLetters("a Terminal 1")
		w.change("a")
		w.workerSaw("a: ok")
		w.deadLetters()
	})
}

// After Discard, a delay that was asked for before works as usual.
func TestStory_OldDelayAfterDiscard(t *testing.T) {
	story(t, Options[string]{}, func(w *world) {
		w.answers("a", "after 1m", "terminal")
		w.run()
		w.change("a")
		w.change("a")
		w.workerSaw("a: after 1m", "a: terminal")
		assert.True(t, w.c.DeadLetters().Discard("a"))
		w.after(time.Hour)
		w.workerSaw("a: ok")
	})
}

// A terminal error is not tried again, and the rate limiter keeps what it knew.
func TestStory_TerminalErrorIsGivenUpAtOnce(t *testing.T) {
	story(t, Options[string]{}, func(w *world) {
		w.answers("a", "error", "terminal")
		w.run()
		w.change("a")
		w.after(time.Hour)
		w.workerSaw("a: error", "a: terminal")
		w.deadLetters("a Terminal 2")
		w.limiterCounts("a", 1)
		letter, _ := w.c.DeadLetters().Get("a")
		assert.NotErrorIs(t, letter.First.Err, TerminalError(nil))
		assert.ErrorIs(t, letter.Last.Err, TerminalError(nil))

		w.change("a")
		w.workerSaw("a: ok")
		w.limiterCounts("a", 0)
	})
}

// An operator repairs what was wrong and replays.
func TestStory_ReplayGivesNewAttempts(t *testing.T) {
	story(t, Options[string]{MaxAttempts: 1}, func(w *world) {
		w.fails("a", 1)
		w.fails("b", 2)
		w.fails("c", 1)
		w.run()
		w.change("a", "b", "c")
		w.workerSaw("a: error", "b: error", "c: error")
		w.deadLetters("a MaxAttempts 1", "b MaxAttempts 1", "c MaxAttempts 1")

		assert.True(t, w.c.DeadLetters().Discard("c"))
		assert.False(t, w.c.DeadLetters().Discard("c"))
		assert.False(t, w.c.DeadLetters().Replay("c"))
		w.narrate.Event("worker", "ReplayAll")
		assert.Equal(t, 2, w.c.DeadLetters().ReplayAll())
		w.settle()
		w.workerSaw("a: ok", "b: error")
		w.deadLetters("b MaxAttempts 1")
		assert.Equal(t, 1, w.c.DeadLetters().DiscardAll())
		w.after(time.Hour)
		w.workerSaw()
	})
}

// More keys die than there is room for: the oldest letters go, and are counted.
func TestStory_OldestDeadLetterMakesRoom(t *testing.T) {
	story(t, Options[string]{DeadLetterCapacity: 2}, func(w *world) {
		w.answers("a", "error", "terminal")
		w.answers("b", "terminal")
		w.answers("c", "terminal")
		w.run()
		w.change("a")
		w.after(time.Second)
		w.limiterCounts("a", 1)
		w.change("b", "c")
		w.deadLetters("b Terminal 1", "c Terminal 1")
		w.limiterCounts("a", 0)
		assert.EqualValues(t, 1, w.c.Status().Evicted)
		w.change("a")
		w.workerSaw("a: error", "a: terminal", "b: terminal", "c: terminal", "a: ok")
	})
}
