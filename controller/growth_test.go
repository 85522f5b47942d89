// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"testing"
	"time"

	"example.com/informerstack/internal/tools/measure"
)

func noopInt(context.Context, int) (Result, error) { return Result{}, nil }

// An object may concern any number of keys: an update takes linear time in their number.
func TestGrowth_KeysOfOneObject(t *testing.T) {
	c := New("test", noopInt, Options[int]{})
	defer c.Queue().ShutDown()
	handler := c.MapHandler(func(obj any) ([]int, error) {
		keys := make([]int, obj.(int))
		for i := range keys {
			keys[i] = i + len(keys)
		}
		return keys, nil
	})
	measure.Growth(t, 2000, func(n int) { handler.OnUpdate(n, n) })
}

// An Enqueue takes constant time, however many calls run.
func TestGrowth_EnqueueBesideCalls(t *testing.T) {
	measure.Growth(t, 2000, func(n int) {
		c := New("test", noopInt, Options[int]{MaxAttempts: 2})
		defer c.Queue().ShutDown()
		for key := range n {
			c.keys.begin(&reconcileContext[int]{key: key})
		}
		for key := range n {
			c.Enqueue(key)
		}
	})
}

// Keys fail, are given up, and are evicted in constant time each, and a Snapshot is about linear.
func TestGrowth_FailedKeys(t *testing.T) {
	measure.Growth(t, 1000, func(n int) {
		c := New("test", noopInt, Options[int]{MaxAttempts: 2, DeadLetterCapacity: n / 2})
		defer c.Queue().ShutDown()
		for range 2 { // fail once, then again
			for key := range n {
				call := &reconcileContext[int]{key: key}
				c.keys.begin(call)
				c.keys.fail(call, errBoom, "", time.Time{})
			}
			c.Snapshot()
		}
		c.DeadLetters().ReplayAll()
	})
}
