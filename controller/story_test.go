// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// However often a key changes before a worker takes it, reconcile runs once; it looks at the
// present state anyway.
func TestStory_ChangesBeforeTheWorkerAreOneCall(t *testing.T) {
	story(t, Options[string]{}, func(w *world) {
		w.change("a", "a", "b", "a")
		w.workerSaw()
		w.run()
		w.workerSaw("a: ok", "b: ok")
	})
}

// A key that changes while it is reconciled goes to no second worker, and is reconciled once more
// afterwards, however often it changed.
func TestStory_ChangeDuringReconcileIsOneMoreCall(t *testing.T) {
	story(t, Options[string]{Workers: 4}, func(w *world) {
		w.answers("a", "hold")
		w.run()
		w.change("a")
		w.change("a", "a", "a")
		w.workerSaw()
		w.release("a")
		w.workerSaw("a: hold", "a: ok")
	})
}

// Different keys share the workers.
func TestStory_WorkersRunSideBySide(t *testing.T) {
	story(t, Options[string]{Workers: 2}, func(w *world) {
		w.answers("a", "hold")
		w.answers("b", "hold")
		w.run()
		w.change("a", "b", "c")
		w.workerSaw()
		assert.Len(t, w.c.Snapshot().Running, 2)
		assert.Equal(t, 1, w.c.Snapshot().Queued)
		w.release("b")
		w.workerSaw("b: hold", "c: ok")
		w.release("a")
		w.workerSaw("a: hold")
	})
}

// An error is tried again after a delay that doubles; success makes the next failure start from the
// first delay again.
func TestStory_ErrorsBackOffAndSuccessForgets(t *testing.T) {
	story(t, Options[string]{}, func(w *world) {
		w.fails("a", 3)
		w.run()
		w.change("a")
		w.workerSaw("a: error")
		w.after(time.Second)
		w.workerSaw("a: error")
		w.after(2 * time.Second)
		w.workerSaw("a: error")
		w.limiterCounts("a", 3)
		w.after(4 * time.Second)
		w.workerSaw("a: ok")
		w.limiterCounts("a", 0)

		w.fails("a", 1)
		w.change("a")
		w.after(time.Second)
		w.workerSaw("a: error", "a: ok")
	})
}

// RequeueAfter asks for another call without any failure being counted.
func TestStory_RequeueAfterIsNoFailure(t *testing.T) {
	story(t, Options[string]{MaxAttempts: 2}, func(w *world) {
		w.answers("a", "error", "after 1m", "after 1m", "error")
		w.run()
		w.change("a")
		w.after(time.Second)
		w.workerSaw("a: error", "a: after 1m")
		w.limiterCounts("a", 0)
		w.after(time.Minute)
		w.workerSaw("a: after 1m")
		w.after(time.Minute)
		w.workerSaw("a: error")
		w.deadLetters()
		w.after(time.Second)
		w.workerSaw("a: ok")
		w.after(time.Hour)
		w.workerSaw()
	})
}

// The object is deleted. Its delete event is a change like any other: reconcile finds nothing,
// cleans up, and the key is forgotten everywhere.
func TestStory_DeletionForgetsTheKey(t *testing.T) {
	story(t, Options[string]{MaxAttempts: 5}, func(w *world) {
		w.fails("a", 2)
		w.run()
		w.change("a")
		w.after(time.Second)
		w.limiterCounts("a", 2)
		w.change("a") // the delete
		w.workerSaw("a: error", "a: error", "a: ok")
		w.limiterCounts("a", 0)
		assert.Empty(t, w.c.Snapshot().Failing)
	})
}

// cilium/cilium#27340: a delete failed and will be retried, and the object is created again
// meanwhile. The queue holds a key, not the old event, so the retry sees the new object.
func TestStory_RetriedDeleteSeesTheNewObject(t *testing.T) {
	story(t, Options[string]{}, func(w *world) {
		w.run()
		w.set("a", "old")
		w.answers("a", "error")
		w.remove("a")
		w.set("a", "new")
		w.after(time.Hour) // the retry of the failed delete
		w.workerSaw("a: ok", "a: error", "a: ok", "a: ok")
		w.reconcileRead("a", "old", "", "new", "new")
	})
}

// A panic is an error with a stack by default; the worker lives on.
func TestStory_PanicIsRetried(t *testing.T) {
	story(t, Options[string]{MaxAttempts: 3}, func(w *world) {
		w.answers("a", "panic", "error", "panic", "ok")
		w.run()
		w.change("a")
		w.after(time.Minute)
		w.workerSaw("a: panic", "a: error", "a: panic")
		w.deadLetters("a MaxAttempts 3")
		letter, _ := w.c.DeadLetters().Get("a")
		panicked, ok := errors.AsType[*PanicError](letter.Last.Err)
		require.True(t, ok)
		assert.ErrorIs(t, panicked, errBoom)
		assert.Contains(t, string(panicked.Stack), "reconcile")
		assert.EqualError(t, panicked, "panic: boom [recovered]")
	})
}

// Under DeadLetterOnPanic the key is given up at the first panic.
func TestStory_PanicIsBuried(t *testing.T) {
	for _, panics := range []string{"panic", "goexit"} {
		story(t, Options[string]{Panic: DeadLetterOnPanic}, func(w *world) {
			w.answers("a", "error", panics)
			w.run()
			w.change("a")
			w.after(time.Minute)
			w.change("b")
			w.workerSaw("a: error", "a: "+panics, "b: ok")
			w.deadLetters("a Panicked 2")
			w.limiterCounts("a", 0)
		})
	}
}

// A reconcile that ends its goroutine, as t.FailNow does, fails like one that panics. The
// controller continues with as many workers as before.
func TestStory_GoexitIsAFailure(t *testing.T) {
	for _, policy := range []PanicPolicy{RetryOnPanic, CrashOnPanic} {
		story(t, Options[string]{Workers: 2, MaxAttempts: 3, Panic: policy}, func(w *world) {
			w.answers("a", "goexit", "goexit")
			w.run()
			w.change("a", "b")
			w.after(time.Minute)
			saw, _ := w.takeSaw()
			assert.ElementsMatch(t, []string{"a: goexit", "b: ok", "a: goexit", "a: ok"}, saw)
			for _, report := range w.reported() {
				assert.Equal(t, report.Outcome == OutcomeError, report.Panicked)
			}

			w.answers("a", "goexit", "goexit", "goexit")
			w.change("a")
			w.after(time.Minute)
			w.deadLetters("a MaxAttempts 3")
			letter, _ := w.c.DeadLetters().Get("a")
			panicked, ok := errors.AsType[*PanicError](letter.Last.Err)
			require.True(t, ok)
			assert.EqualError(t, panicked, "panic: reconcile called runtime.Goexit [recovered]")
			assert.Contains(t, string(panicked.Stack), "(*world).reconcile")

			w.takeSaw()
			w.answers("x", "hold")
			w.answers("y", "hold")
			w.change("x", "y", "z")
			assert.Len(t, w.c.Snapshot().Running, 2, "there are two workers")
			w.stop() // C5
			saw, _ = w.takeSaw()
			assert.ElementsMatch(t, []string{"x: hold", "y: hold"}, saw)
		})
	}
}

// It may also end its goroutine when the controller stops: Run returns all the same.
func TestStory_GoexitAtTheStop(t *testing.T) {
	story(t, Options[string]{GracePeriod: time.Minute, Drain: true}, func(w *world) {
		w.answers("a", "hold then goexit")
		w.run()
		w.change("a", "b")
		w.cancel()
		w.settle()
		w.release("a")
		<-w.ended
		w.workerSaw("a: hold then goexit", "b: ok")
	})
}

// A reconcile that hangs loses its context after the timeout, and is tried again.
func TestStory_TimeoutFreesTheWorker(t *testing.T) {
	story(t, Options[string]{ReconcileTimeout: 10 * time.Second}, func(w *world) {
		w.answers("a", "hold")
		w.run()
		w.change("a", "b")
		w.workerSaw()
		w.after(10 * time.Second)
		w.workerSaw("a: hold", "b: ok")
		assert.True(t, w.reported()[0].TimedOut)
		assert.Equal(t, 10*time.Second, w.reported()[0].Took)
		assert.Equal(t, OutcomeError, w.reported()[0].Outcome)
		w.after(time.Second)
		w.workerSaw("a: ok")
		assert.False(t, w.reported()[2].TimedOut)
	})
}
