// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Lead does its caller's work in place of OnStartedLeading's, and says how it ended.
func TestLead(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a", releasing)
		ctx, cancel := context.WithCancel(quiet())
		ended := make(chan error, 1)
		go func() {
			ended <- a.Lead(ctx, a.counted(func(ctx context.Context) {
				w.say("a works")
				<-ctx.Done()
			}))
		}()
		w.after(time.Second)
		w.saw("0s a works")
		w.holder("a")
		assert.ErrorIs(t, a.Lead(quiet(), func(context.Context) {}), ErrRunning)
		cancel()
		assert.NoError(t, <-ended)
		w.saw("1s a stopped")
		w.holder("")
	})
}

// Without Rejoin, Lead returns when the lease is lost.
func TestLead_Lost(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a")
		ended := make(chan error, 1)
		go func() {
			ended <- a.Lead(quiet(), a.counted(func(ctx context.Context) { <-ctx.Done() }))
		}()
		w.after(time.Second)
		a.api("fails")
		w.after(time.Minute)
		assert.ErrorIs(t, <-ended, ErrLost)
	})
}

// AbandonWork is for Run, and for programs that were written for client-go. Lead returns, and
// releases the lease, when the work has returned: a controller has its grace period then.
func TestLead_WaitsForAbandonedWork(t *testing.T) {
	story(t, func(w *world) {
		a := w.candidate("a", releasing, abandoning).works(5 * time.Second)
		a.run = func(ctx context.Context) {
			assert.NoError(w.t, a.Lead(ctx, a.config.Callbacks.OnStartedLeading))
		}
		a.runs()
		w.after(time.Second)
		a.stop()
		assert.False(t, a.returned())
		w.after(4 * time.Second)
		w.holder("a")
		w.after(time.Second)
		w.holder("")
		w.saw("0s a started", "6s a finished its work", "6s a stopped")
	})
}
