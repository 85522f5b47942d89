// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A key changes while its call fails: whichever is first, the failure does not count afterwards.
func TestChangeMeetsFailure(t *testing.T) {
	for _, giveUp := range []Reason{"", Terminal} {
		k := newKeyTracker[string](1, 0, 10)
		for range 5000 {
			call := &reconcileContext[string]{key: "a"}
			require.True(t, k.begin(call), "a dead letter was left")
			var both sync.WaitGroup
			both.Go(func() { k.fail(call, errBoom, giveUp, time.Time{}) })
			both.Go(func() { k.changed("a") })
			both.Wait()
			require.Empty(t, k.failing)
			require.Zero(t, k.failed.Load())
		}
	}
}

// A change that meets the success of the call before it leaves nothing behind either.
func TestChangeMeetsSuccess(t *testing.T) {
	k := newKeyTracker[string](1, 0, 10)
	for range 2000 {
		first := &reconcileContext[string]{key: "a"}
		k.begin(first)
		k.fail(first, errBoom, "", time.Time{})
		second := &reconcileContext[string]{key: "a"}
		k.begin(second)
		var both sync.WaitGroup
		both.Go(func() { k.finish(second, OutcomeSuccess) })
		both.Go(func() { k.changed("a") })
		both.Wait()
		require.Empty(t, k.failing)
		require.Zero(t, k.failed.Load())
	}
}
