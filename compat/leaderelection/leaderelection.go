// SPDX-License-Identifier: Apache-2.0

// Package leaderelection has the names of client-go's tools/leaderelection, on the elector of this
// module. A program that imports k8s.io/client-go/tools/leaderelection only has to change the
// import.
//
//	leaderelection <- [compat/leaderelection] <- programs written for client-go
//
// Electors, callbacks and health checks are aliases of the same names in
// example.com/informerstack/leaderelection: see that package for their behaviour, and
// docs/differences.md for the differences. This package adds the config with client-go's fields and
// rules (Run does not wait for the work, OnStoppedLeading is always called), the metrics provider
// of the process, and the constructor of candidates of coordinated elections from a clientset.
//
// Read leaderelection.go, metrics.go, leasecandidate.go. Then go test ./compat/leaderelection.
// Goroutines: those of the elector. Locking: none; the metrics provider is set atomically.
//
// Source: tools/leaderelection/leaderelection.go LeaderElector,
// tools/leaderelection/healthzadaptor.go HealthzAdaptor
package leaderelection

import (
	"context"
	"time"

	"example.com/informerstack/compat/internal/found"
	"example.com/informerstack/compat/leaderelection/resourcelock"
	"example.com/informerstack/leaderelection"
)

// JitterFactor spreads the candidates: after an attempt they wait RetryPeriod, and in addition up
// to JitterFactor times as long.
const JitterFactor = leaderelection.JitterFactor

type (
	// LeaderElector is one candidate.
	LeaderElector = leaderelection.LeaderElector
	// LeaderCallbacks are the callbacks of an elector. An elector of this package calls
	// OnStoppedLeading whenever Run ends, also without having led, possibly before OnStartedLeading
	// has returned.
	LeaderCallbacks = leaderelection.LeaderCallbacks
	// HealthzAdaptor is a health check that fails while an elector leads beyond the end of its
	// lease.
	HealthzAdaptor = leaderelection.HealthzAdaptor
)

// LeaderElectionConfig names the lease and the candidate, and sets the timing. 15 s, 10 s and 2 s
// are usual for the three durations.
//
// Source: tools/leaderelection/leaderelection.go LeaderElectionConfig
type LeaderElectionConfig struct {
	// Lock is the lease, and has the identity of this candidate.
	Lock resourcelock.Interface

	// LeaseDuration is how long candidates wait after the last observed renewal before they take
	// the lease.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader tries to renew before it stops leading. It must be less
	// than LeaseDuration.
	RenewDeadline time.Duration
	// RetryPeriod is the time between two attempts.
	RetryPeriod time.Duration

	Callbacks LeaderCallbacks

	// WatchDog, if not nil, is connected to the elector by RunOrDie.
	WatchDog *HealthzAdaptor

	// ReleaseOnCancel releases the lease when Run ends. All work must have ended before its context
	// is cancelled, since Run does not wait for OnStartedLeading. (An elector of package
	// leaderelection of this module does.)
	ReleaseOnCancel bool

	// Name is the name of the lease in metrics and in the error of Check.
	Name string

	// Coordinated lets the cluster's coordinator choose the holder of the lease (an alpha feature
	// of Kubernetes).
	Coordinated bool
}

// ours converts lec to the config of our elector, with client-go's rules.
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
	elector, err := leaderelection.NewLeaderElector(lec.ours())
	if err != nil {
		return nil, err
	}
	found.Add(lec.Lock.Describe(), elector, func(elector *LeaderElector) any { return elector })
	return elector, nil
}

// RunOrDie runs a candidate until it has lost the lease or ctx is done, and panics if lec is
// invalid.
//
// Source: tools/leaderelection/leaderelection.go RunOrDie
func RunOrDie(ctx context.Context, lec LeaderElectionConfig) {
	elector, err := NewLeaderElector(lec)
	if err != nil {
		panic(err)
	}
	if lec.WatchDog != nil {
		lec.WatchDog.SetLeaderElection(elector)
	}
	elector.Run(ctx)
}

// NewLeaderHealthzAdaptor returns a check that fails when the lease has been expired for longer
// than timeout.
//
// Source: tools/leaderelection/healthzadaptor.go NewLeaderHealthzAdaptor
func NewLeaderHealthzAdaptor(timeout time.Duration) *HealthzAdaptor {
	return leaderelection.NewLeaderHealthzAdaptor(timeout)
}
