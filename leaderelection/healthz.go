// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"net/http"
	"sync/atomic"
	"time"
)

// HealthzAdaptor is a health check that fails when an elector leads longer than it may, for instance because everything
// hangs. It can be served before there is an elector.
//
// Source: tools/leaderelection/healthzadaptor.go HealthzAdaptor
type HealthzAdaptor struct {
	timeout time.Duration
	elector atomic.Pointer[LeaderElector]
}

// NewLeaderHealthzAdaptor returns a check that lets the lease be expired for timeout before it fails.
//
// Source: tools/leaderelection/healthzadaptor.go NewLeaderHealthzAdaptor
func NewLeaderHealthzAdaptor(timeout time.Duration) *HealthzAdaptor {
	return &HealthzAdaptor{timeout: timeout}
}

// Name returns the name of the check.
func (a *HealthzAdaptor) Name() string { return "leaderElection" }

// Check returns what the elector's Check does, and nil while there is none.
func (a *HealthzAdaptor) Check(*http.Request) error {
	if elector := a.elector.Load(); elector != nil {
		return elector.Check(a.timeout)
	}
	return nil
}

// SetLeaderElection says which elector to check. RunOrDie calls it for LeaderElectionConfig.WatchDog.
func (a *HealthzAdaptor) SetLeaderElection(elector *LeaderElector) { a.elector.Store(elector) }
