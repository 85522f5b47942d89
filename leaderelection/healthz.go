// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"net/http"
	"sync/atomic"
	"time"
)

// HealthzAdaptor is a health check that fails if a leader's work continues after its lease has
// expired, for instance because it hangs. It can be served before there is an elector.
//
// Source: tools/leaderelection/healthzadaptor.go HealthzAdaptor
type HealthzAdaptor struct {
	timeout time.Duration
	elector atomic.Pointer[LeaderElector]
}

// NewLeaderHealthzAdaptor returns a check that fails when the lease has been expired for timeout.
//
// Source: tools/leaderelection/healthzadaptor.go NewLeaderHealthzAdaptor
func NewLeaderHealthzAdaptor(timeout time.Duration) *HealthzAdaptor {
	return &HealthzAdaptor{timeout: timeout}
}

// Name returns the name of the check.
func (a *HealthzAdaptor) Name() string { return "leaderElection" }

// Check returns the result of the elector's Check, and nil if there is no elector.
func (a *HealthzAdaptor) Check(*http.Request) error {
	if elector := a.elector.Load(); elector != nil {
		return elector.Check(a.timeout)
	}
	return nil
}

// SetLeaderElection sets the elector to check. RunOrDie calls it for LeaderElectionConfig.WatchDog.
func (a *HealthzAdaptor) SetLeaderElection(elector *LeaderElector) { a.elector.Store(elector) }
