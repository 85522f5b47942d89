// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A call that is refused is neither a success nor a failure: the failures before it count on, and
// so does the limiter. The key is called again when it is requeued, or changes.
func TestRefuse(t *testing.T) {
	story(t, Options[string]{MaxAttempts: 8}, func(w *world) {
		w.fails("a", 2)
		w.answers("a", "refuse then terminal", "refuse then after 1s")
		w.fails("a", 6)
		w.run()
		w.change("a")
		w.after(time.Hour)
		w.workerSaw("a: error", "a: error", "a: refuse then terminal")
		w.limiterCounts("a", 2)
		first := w.refused["a"]
		w.requeue("a")
		w.after(time.Hour)
		w.workerSaw("a: refuse then after 1s")
		assert.Equal(t, first, w.refused["a"], "the key is the same")
		w.limiterCounts("a", 2)
		w.deadLetters()

		w.requeue("a")
		w.workerSaw("a: error")
		w.limiterCounts("a", 3)
		w.after(time.Hour)
		w.workerSaw(slices.Repeat([]string{"a: error"}, 5)...)
		w.deadLetters("a MaxAttempts 8")
	})
	assert.Nil(t, Refuse(t.Context()))
}

// Refuse has an effect during the call only. A goroutine that outlives the call gets nil: nothing
// would wait for its Requeue.
func TestRefuse_AfterTheCall(t *testing.T) {
	for _, early := range []bool{false, true} {
		story(t, Options[string]{}, func(w *world) {
			calls := 0
			late := make(chan struct{})
			results := make(chan Refused, 1)
			w.c.reconcile = func(ctx context.Context, key string) (Result, error) {
				calls++
				if early {
					assert.Equal(t, Refuse(ctx), Refuse(ctx), "twice is once")
				}
				go func() {
					<-late
					results <- Refuse(ctx)
				}()
				return Result{}, nil
			}
			w.run()
			w.change("a")
			close(late)
			assert.Nil(t, <-results)
			w.after(time.Hour)
			assert.Equal(t, 1, calls)
		})
	}
}

// A call that panics counts, whether or not it was refused. Requeue is no change: the key remains a
// dead letter.
func TestRefuse_ThenPanic(t *testing.T) {
	story(t, Options[string]{MaxAttempts: 3, Panic: RetryOnPanic}, func(w *world) {
		w.answers("a", slices.Repeat([]string{"refuse then panic"}, 3)...)
		w.run()
		w.change("a")
		w.after(time.Hour)
		w.workerSaw(slices.Repeat([]string{"a: refuse then panic"}, 3)...)
		w.deadLetters("a MaxAttempts 3")
		w.requeue("a")
		w.after(time.Hour)
		w.workerSaw()
		w.deadLetters("a MaxAttempts 3")
	})
}
