// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// running starts c. The function that it returns stops c, and returns when Run has.
func running(t *testing.T, c *Controller[string]) (stop func()) {
	ctx, cancel := context.WithCancel(quiet(t.Context()))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		assert.NoError(t, c.Run(ctx))
	}()
	return func() { cancel(); <-ended }
}

// A call that is refused is neither a success nor a failure: the failures before it count on, and
// so does the limiter. The key is called again when it is requeued, or changes.
func TestRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refuse atomic.Bool
		var calls atomic.Int64
		var refused sync.Map // its keys are what Refuse has returned
		c := New("c", func(ctx context.Context, key string) (Result, error) {
			calls.Add(1)
			if refuse.Load() {
				refused.Store(Refuse(ctx), true)
				return Result{RequeueAfter: time.Second}, TerminalError(errors.New("ignored"))
			}
			return Result{}, errors.New("failure")
		}, Options[string]{MaxAttempts: 8})
		defer running(t, c)()
		wait := func(d time.Duration) { time.Sleep(d); synctest.Wait() }

		c.Enqueue("key")
		wait(100 * time.Millisecond)
		failures, before := c.Queue().NumRequeues("key"), int(calls.Load())
		assert.Equal(t, before, failures)
		refuse.Store(true)
		wait(time.Hour)
		assert.Equal(t, before+1, int(calls.Load()))
		assert.Equal(t, failures, c.Queue().NumRequeues("key"))
		requeue := func() (count int) {
			for r := range refused.Range {
				r.(Refused).Requeue()
				count++
			}
			return count
		}
		assert.Equal(t, 1, requeue())
		assert.Equal(t, 1, requeue(), "the key is the same")
		wait(time.Hour)
		assert.Equal(t, before+2, int(calls.Load()))
		assert.Zero(t, c.DeadLetters().Len())

		refuse.Store(false)
		requeue()
		wait(0)
		assert.Equal(t, failures+1, c.Queue().NumRequeues("key"))
		wait(time.Hour)
		assert.Equal(t, before+2+8-failures, int(calls.Load()))
		assert.Equal(t, 1, c.DeadLetters().Len())
	})
	assert.Nil(t, Refuse(t.Context()))
}

// Refuse has an effect during the call only. A goroutine that outlives the call gets nil: nothing
// would wait for its Requeue.
func TestRefuse_AfterTheCall(t *testing.T) {
	for _, early := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			calls := 0
			late := make(chan struct{})
			results := make(chan Refused, 1)
			c := New("c", func(ctx context.Context, key string) (Result, error) {
				calls++
				if early {
					assert.Equal(t, Refuse(ctx), Refuse(ctx), "twice is once")
				}
				go func() {
					<-late
					results <- Refuse(ctx)
				}()
				return Result{}, nil
			}, Options[string]{})
			defer running(t, c)()
			c.Enqueue("key")
			synctest.Wait()
			close(late)
			assert.Nil(t, <-results)
			time.Sleep(time.Hour)
			assert.Equal(t, 1, calls)
		})
	}
}

// A call that panics counts, whether or not it was refused. The key is called again both for its
// failure and for Requeue.
func TestRefuse_ThenPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var refused Refused
		calls := 0
		c := New("c", func(ctx context.Context, key string) (Result, error) {
			calls++
			refused = Refuse(ctx)
			panic("boom")
		}, Options[string]{MaxAttempts: 3, Panic: RetryOnPanic})
		defer running(t, c)()
		c.Enqueue("key")
		time.Sleep(time.Hour)
		synctest.Wait()
		assert.Equal(t, 3, calls)
		assert.Equal(t, 1, c.DeadLetters().Len())
		refused.Requeue()
		time.Sleep(time.Hour)
		assert.Equal(t, 3, calls, "Requeue is no change: the key remains a dead letter")
	})
}
