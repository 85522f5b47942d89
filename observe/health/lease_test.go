// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/informerstack/apitest"
	"example.com/informerstack/internal/tools/testserver"
	"example.com/informerstack/leaderelection"
	"example.com/informerstack/leaderelection/resourcelock"
	"example.com/informerstack/observe/health"
)

// With the usual durations, a leader gives up 12 s after its last renewal: the finding is there for
// half of that time.
func TestFindings_OfALeaderThatSoonGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := testserver.New(t, apitest.Options{})
		lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, "default",
			"lease", resourcelock.ResourceLockConfig{Identity: "me"}, server.Config(),
			10*time.Second)
		require.NoError(t, err)
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second,
			RetryPeriod: 2 * time.Second,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) { <-ctx.Done() },
				OnStoppedLeading: func() {},
			},
		})
		require.NoError(t, err)
		page := health.New()
		page.AddElection("default/lease", elector)
		defer testserver.Run(t.Context(), elector.Run)()
		time.Sleep(time.Minute)
		assert.Empty(t, page.Page().Findings)
		server.Faults().Add(apitest.Fault{Delay: time.Hour}) // it no longer answers
		stopped, found := time.Now(), time.Duration(0)
		for elector.IsLeader() {
			for _, f := range page.Page().Findings {
				assert.Equal(t, health.LeaseLate, f.Kind)
				found += time.Second
			}
			time.Sleep(time.Second)
		}
		assert.Greater(t, found, 4*time.Second)
		assert.Less(t, time.Since(stopped), 13*time.Second)
		assert.Empty(t, page.Page().Findings)
	})
}
