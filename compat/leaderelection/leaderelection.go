// SPDX-License-Identifier: Apache-2.0

// Package leaderelection is client-go's tools/leaderelection, name for name, on the elector of this
// module: where an import of k8s.io/client-go/tools/leaderelection is changed to this one, nothing
// else need change.
//
//	leaderelection <- [compat/leaderelection] <- programs written for client-go
//
// Electors, callbacks and health checks are aliases of the same names in
// example.com/informerstack/leaderelection: read that package for what they do, and
// docs/differences.md for what they do otherwise. Only here are the config with client-go's fields
// and rules (Run returns although the work goes on, OnStoppedLeading is called in any case), the
// metrics provider of the process, and the candidate of coordinated elections that is made from a
// clientset.
//
// Read leaderelection.go, metrics.go, leasecandidate.go. Then go test ./compat/leaderelection.
// Goroutines: those of the elector. Locking: none; what is set once is set atomically.
//
// Source: tools/leaderelection/leaderelection.go LeaderElector,
// tools/leaderelection/healthzadaptor.go HealthzAdaptor
package leaderelection

import (
	"context"
	"time"

	"example.com/informerstack/compat/leaderelection/resourcelock"
	"example.com/informerstack/leaderelection"
)

// JitterFactor spreads candidates: they wait RetryPeriod after a try, and up to JitterFactor times
// as long on top.
const JitterFactor = leaderelection.JitterFactor

type (
	// LeaderElector is one candidate.
	LeaderElector = leaderelection.LeaderElector
	// LeaderCallbacks are what an elector calls. For one made here, OnStoppedLeading is called
	// whenever Run ends, also without having led, and OnStartedLeading may not have returned by
	// then.
	LeaderCallbacks = leaderelection.LeaderCallbacks
	// HealthzAdaptor is a health check that fails when an elector leads longer than it may.
	HealthzAdaptor = leaderelection.HealthzAdaptor
)

// LeaderElectionConfig says who runs for what, and how patiently. 15 s, 10 s and 2 s are usual for
// the three durations.
//
// Source: tools/leaderelection/leaderelection.go LeaderElectionConfig
type LeaderElectionConfig struct {
	// Lock is the lease, and knows this candidate's identity.
	Lock resourcelock.Interface

	// LeaseDuration is how long candidates wait for a sign of life of the holder before they take
	// the lease.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader goes on trying to renew before it stops leading. It must
	// be less than LeaseDuration.
	RenewDeadline time.Duration
	// RetryPeriod is the time between two tries.
	RetryPeriod time.Duration

	Callbacks LeaderCallbacks

	// WatchDog, if not nil, is tied to the elector by RunOrDie.
	WatchDog *HealthzAdaptor

	// ReleaseOnCancel releases the lease when Run ends. All work must have ended before its context
	// is cancelled, since Run does not wait for OnStartedLeading. (An elector of package
	// leaderelection of this module does.)
	ReleaseOnCancel bool

	// Name of the lease, for metrics and Check.
	Name string

	// Coordinated leaves it to the cluster's coordinator to whom the lease goes (an alpha feature
	// of Kubernetes).
	Coordinated bool
}

// ours is lec with client-go's rules.
func (lec LeaderElectionConfig) ours() leaderelection.LeaderElectionConfig {
	return leaderelection.LeaderElectionConfig{
		Lock:            lec.Lock,
		LeaseDuration:   lec.LeaseDuration,
		RenewDeadline:   lec.RenewDeadline,
		RetryPeriod:     lec.RetryPeriod,
		Callbacks:       lec.Callbacks,
		WatchDog:        lec.WatchDog,
		ReleaseOnCancel: lec.ReleaseOnCancel,
		Name:            lec.Name,
		Coordinated:     lec.Coordinated,

		AbandonWork:   true,
		AlwaysStopped: true,
		Metrics:       newLeaderMetric(),
	}
}

// NewLeaderElector returns a candidate that does nothing before Run. It fails if lec is invalid.
//
// Source: tools/leaderelection/leaderelection.go NewLeaderElector
func NewLeaderElector(lec LeaderElectionConfig) (*LeaderElector, error) {
	return leaderelection.NewLeaderElector(lec.ours())
}

// RunOrDie runs a candidate until it has lost the lease or ctx is done, and panics if lec is
// invalid.
//
// Source: tools/leaderelection/leaderelection.go RunOrDie
func RunOrDie(ctx context.Context, lec LeaderElectionConfig) {
	leaderelection.RunOrDie(ctx, lec.ours())
}

// NewLeaderHealthzAdaptor returns a check that lets the lease be expired for timeout before it
// fails.
//
// Source: tools/leaderelection/healthzadaptor.go NewLeaderHealthzAdaptor
func NewLeaderHealthzAdaptor(timeout time.Duration) *HealthzAdaptor {
	return leaderelection.NewLeaderHealthzAdaptor(timeout)
}
