// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Status has the numbers of a Snapshot.
func TestStatus_CountsWhatTheSnapshotShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New("numbers", func(ctx context.Context, key string) (Result, error) {
			switch key {
			case "slow":
				<-ctx.Done()
			case "fails":
				return Result{}, errors.New("not yet")
			case "hopeless", "hopeless too":
				return Result{}, TerminalError(errors.New("never"))
			}
			return Result{}, nil
		}, Options[string]{DeadLetterCapacity: 1})
		assert.Equal(t, Status{Name: "numbers", Phase: PhaseNew}, c.Status())
		for _, key := range []string{"fails", "hopeless", "hopeless too", "slow", "waits"} {
			c.Enqueue(key)
		}
		assert.Equal(t, Status{Name: "numbers", Phase: PhaseNew, Queued: 5}, c.Status())
		assert.Equal(
			t,
			[]string{"fails", "hopeless", "hopeless too", "slow", "waits"},
			c.Snapshot().Ready,
		)

		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		synctest.Wait()
		assert.Equal(
			t,
			Status{
				Name:        "numbers",
				Phase:       PhaseRunning,
				Queued:      1,
				Running:     1,
				Failing:     1,
				DeadLetters: 1,
				Evicted:     1,
			},
			c.Status(),
		)
		assert.Equal(t, []string{"waits"}, c.Snapshot().Ready)

		cancel()
		require.NoError(t, <-ended)
		time.Sleep(time.Second)
		assert.Equal(t, PhaseStopped, c.Status().Phase)
		assert.Zero(t, c.Status().Running)
	})
}
