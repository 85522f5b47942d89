// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// A call that is refused is neither a success nor a failure: the failures before it count on, and
// so does the limiter. The key is called again when it is requeued, or changes.
func TestRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse, calls := false, 0
		refused := map[Refused]bool{}
		c := New("c", func(ctx context.Context, key string) (Result, error) {
			calls++
			if refuse {
				refused[Refuse(ctx)] = true
				return Result{RequeueAfter: time.Second}, TerminalError(errors.New("ignored"))
			}
			return Result{}, errors.New("failure")
		}, Options[string]{MaxAttempts: 8})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			assert.NoError(t, c.Run(ctx))
		}()
		defer func() { cancel(); <-ended }()
		wait := func(d time.Duration) { time.Sleep(d); synctest.Wait() }

		c.Enqueue("key")
		wait(100 * time.Millisecond)
		failures, before := c.Queue().NumRequeues("key"), calls
		assert.Equal(t, before, failures)
		refuse = true
		wait(time.Hour)
		assert.Equal(t, before+1, calls)
		assert.Equal(t, failures, c.Queue().NumRequeues("key"))
		for r := range refused {
			r.Requeue()
			r.Requeue()
		}
		wait(time.Hour)
		assert.Equal(t, before+2, calls)
		assert.Len(t, refused, 1, "the key is the same")
		assert.Zero(t, c.DeadLetters().Len())

		refuse = false
		for r := range refused {
			r.Requeue()
		}
		wait(0)
		assert.Equal(t, failures+1, c.Queue().NumRequeues("key"))
		wait(time.Hour)
		assert.Equal(t, before+2+8-failures, calls)
		assert.Equal(t, 1, c.DeadLetters().Len())
	})
	assert.Nil(t, Refuse(t.Context()))
}
