// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/informerstack/workqueue"
)

// kubernetes/kubernetes#110696, kubernetes/kubernetes#138743: keys failed, then their objects were
// deleted, and the keys stayed in the rate limiter for ever.
func TestRegress110696_LimiterForgetsDeletedKeys(t *testing.T) {
	var deleted atomic.Bool
	for name, tc := range map[string]struct {
		opts         Options[string]
		afterDeletes string // what reconcile answers then
	}{
		"reconcile cleans up":            {Options[string]{}, "ok"},
		"reconcile fails until given up": {Options[string]{MaxAttempts: 3}, "error"},
		"reconcile fails for a deleted object": {
			Options[string]{Exists: func(string) bool { return !deleted.Load() }}, "error",
		},
	} {
		t.Run(name, func(t *testing.T) {
			deleted.Store(false)
			story(t, tc.opts, func(w *world) {
				var keys []string
				for i := range 100 {
					keys = append(keys, fmt.Sprintf("ns/%d", i))
					w.fails(keys[i], 1)
					w.answers(keys[i], slices.Repeat([]string{tc.afterDeletes}, 100)...)
				}
				w.run()
				w.change(keys...)
				assert.Equal(t, 100, w.c.Snapshot().Limited)
				deleted.Store(true)
				w.change(keys...)
				w.after(time.Hour)
				assert.Zero(t, w.c.Snapshot().Limited)
				assert.Empty(t, w.c.Snapshot().Failing)
				assert.Equal(t, tc.opts.MaxAttempts > 0, w.c.DeadLetters().Len() > 0)
			})
		})
	}
}

// kubernetes/kubernetes#126027: a key that waits for its retry changes, and is reconciled both now
// and when the wait ends. A queue with AddSupersedesDelayed takes the change for both.
func TestRegress126027_ChangeSupersedesRetry(t *testing.T) {
	for _, supersedes := range []bool{false, true} {
		t.Run(fmt.Sprintf("AddSupersedesDelayed=%t", supersedes), func(t *testing.T) {
			newQueue := func(_ string, limiter stringLimiter) stringQueue {
				return workqueue.NewTypedRateLimitingQueue(limiter, workqueue.Config[string]{
					AddSupersedesDelayed: supersedes,
				})
			}
			story(t, Options[string]{NewQueue: newQueue}, func(w *world) {
				w.fails("a", 1)
				w.run()
				w.change("a")
				w.change("a")
				w.workerSaw("a: error", "a: ok")
				w.after(time.Hour)
				if supersedes {
					w.workerSaw()
				} else {
					w.workerSaw("a: ok")
				}
			})
		})
	}
}
