// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// By default the contexts of running calls end with that of Run. Queued keys are not reconciled.
func TestStory_StopEndsWhatRuns(t *testing.T) {
	story(t, Options[string]{MaxAttempts: 1, ReconcileTimeout: time.Hour}, func(w *world) {
		w.answers("a", "hold")
		w.run()
		w.change("a", "b")
		w.stop()
		w.workerSaw("a: hold")
		assert.Equal(t, []Report{{Outcome: OutcomeError}}, w.reported())
		w.deadLetters() // being cut short is no attempt
		assert.Equal(t, PhaseStopped, w.c.Snapshot().Phase)
	})
}

// With a grace period what runs may finish in peace. Nothing new begins. A leader has its grace,
// too, within its term.
func TestStory_GracePeriodLetsWhatRunsFinish(t *testing.T) {
	play := func(w *world) {
		w.answers("a", "hold")
		w.change("a", "b")
		w.cancel()
		w.after(30 * time.Second)
		w.workerSaw()
		assert.Equal(t, PhaseStopping, w.c.Snapshot().Phase)
		w.release("a")
		<-w.ended
		w.workerSaw("a: hold")
		assert.Equal(t, OutcomeSuccess, w.reported()[0].Outcome)
		assert.Equal(t, 30*time.Second, time.Since(w.start))
	}
	opts := Options[string]{GracePeriod: time.Minute}
	story(t, opts, func(w *world) {
		w.run()
		play(w)
	})
	ledStory(t, opts, func(w *world, o *office) {
		w.run()
		o.elect()
		play(w)
	})
}

// The grace period ends: the context of what runs does too. Run waits for those that take no
// notice.
func TestStory_GracePeriodEnds(t *testing.T) {
	story(t, Options[string]{Workers: 2, GracePeriod: time.Minute}, func(w *world) {
		w.answers("a", "hold")
		w.answers("b", "ignore")
		w.run()
		w.change("a", "b")
		w.cancel()
		w.after(time.Minute - 1)
		w.workerSaw()
		w.after(1)
		w.workerSaw("a: hold")
		w.after(time.Hour)
		assert.Equal(t, PhaseStopping, w.c.Snapshot().Phase)
		w.release("b")
		<-w.ended
		w.workerSaw("b: ignore")
	})
}

// Drain handles what is queued, too (kubernetes/kubernetes#141079), and what changed while it ran;
// failures are not tried again, delays not waited for.
func TestStory_DrainEmptiesTheQueue(t *testing.T) {
	story(t, Options[string]{GracePeriod: time.Minute, Drain: true}, func(w *world) {
		w.answers("a", "hold")
		w.fails("b", 1)
		w.answers("z", "after 1h")
		w.run()
		w.change("z", "a", "b", "c")
		w.change("a")
		w.workerSaw("z: after 1h")
		w.cancel()
		w.settle()
		w.workerSaw()
		w.release("a")
		<-w.ended
		w.workerSaw("a: hold", "b: error", "c: ok", "a: ok")
		assert.Equal(t, w.start, time.Now())
	})
}

// After the stop keys are ignored, and the dead letters can still be read.
func TestUseAfterStop(t *testing.T) {
	story(t, Options[string]{}, func(w *world) {
		w.answers("a", "terminal")
		w.run()
		w.change("a")
		w.stop()
		w.workerSaw("a: terminal")
		w.deadLetters("a Terminal 1")
		w.change("b")
		w.c.Queue().AddAfter("b", time.Second)
		w.c.Queue().AddRateLimited("b")
		assert.True(t, w.c.DeadLetters().Replay("a"))
		w.after(time.Hour)
		w.workerSaw()
		w.deadLetters()
	})
}

func TestRunTwice(t *testing.T) {
	story(t, Options[string]{}, func(w *world) {
		w.run()
		assert.ErrorIs(t, w.c.Run(t.Context()), ErrStarted)
		w.change("a") // the first Run continues
		w.workerSaw("a: ok")
		w.stop()
		assert.ErrorIs(t, w.c.Run(t.Context()), ErrStarted)
	})
}
