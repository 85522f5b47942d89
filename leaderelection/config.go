// SPDX-License-Identifier: Apache-2.0

// Package leaderelection lets one of several processes work at a time: the one that holds a lease.
//
//	API server <- get, create, update - resourcelock <- [leaderelection] -> OnStartedLeading, OnStoppedLeading, OnNewLeader
//
// A candidate that sees the lease's record unchanged for the lease's duration, by its own clock, takes it; that writes of an
// old version are refused makes one of several win. The holder writes the record again every RetryPeriod, and stops working
// before the others may take the lease. Clocks are never compared, so they may differ; they must run about equally fast: a
// clock may gain on another by the ratio of LeaseDuration to RenewDeadline+RetryPeriod.
//
// No election can keep a process from being paused between a look at the clock and what it does next. The context of the
// work, IsLeader and FencingTokenFromContext tell a leader of the past that it is one as soon as it asks; what acts without
// asking is found out only by who is written to, with the help of a fencing token.
//
// Read config.go, phase.go (the state machine), elector.go, attempt.go (one try to get or keep the lease), renew.go, term.go
// (how a leader knows that it still is one), fencing.go; resourcelock is where the record is. candidate.go and
// candidateclient.go are for coordinated elections only. Then go test -v ./leaderelection.
// Goroutines: Run's own makes all requests; OnStartedLeading has one, OnNewLeader one while there is something to tell; a
// timer watches over the term. All but OnNewLeader's have ended when Run returns. Locking: the elector's mu guards what
// others may ask for, the term's its end; no foreign code runs under them.
//
// Source: tools/leaderelection/leaderelection.go LeaderElector
package leaderelection

import (
	"context"
	"errors"
	"time"

	"example.com/informerstack/leaderelection/resourcelock"
)

// JitterFactor spreads candidates: they wait RetryPeriod after a try, and up to JitterFactor times as long on top.
const JitterFactor = 1.2

// LeaderElectionConfig says who runs for what, and how patiently. 15 s, 10 s and 2 s are usual for the three durations.
type LeaderElectionConfig struct {
	// Lock is the lease, and knows this candidate's identity.
	Lock resourcelock.Interface

	// LeaseDuration is how long candidates wait for a sign of life of the holder before they take the lease. It is
	// rounded up to seconds in the record; the holder's record counts, not the candidate's config.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader goes on trying to renew when it is due, before it stops leading. It must be less
	// than LeaseDuration. A renewal counts from when it was sent: a server that takes more than half of RenewDeadline to
	// answer costs the lease.
	RenewDeadline time.Duration
	// RetryPeriod is the time between two tries, of candidates (see JitterFactor) and of the leader.
	RetryPeriod time.Duration

	Callbacks LeaderCallbacks

	// WatchDog, if not nil, is tied to the elector by RunOrDie.
	WatchDog *HealthzAdaptor

	// ReleaseOnCancel gives the lease back when Run ends, so that the next leader need not wait for it to expire.
	ReleaseOnCancel bool

	// Name of the lease, for metrics and Check.
	Name string

	// Coordinated leaves it to the cluster's coordinator (coordinated leader election, an alpha feature) to whom the
	// lease goes: the candidate never takes it, and steps down when the coordinator prefers somebody else.
	Coordinated bool

	// client-go has nothing like what follows.

	// Rejoin makes Run a candidate again after it has lost the lease, until its context is done. OnStartedLeading is
	// then called once a term, never before the call of the last term has returned.
	Rejoin bool

	// AbandonWork makes Run return, and the lease be released, while OnStartedLeading is still at work, as client-go
	// does. Otherwise the lease is renewed until the work has returned, and is released then. It excludes Rejoin.
	AbandonWork bool

	// AlwaysStopped calls OnStoppedLeading also when Run returns without having led, as client-go does.
	AlwaysStopped bool

	// Metrics, if not nil, is told about this elector.
	Metrics LeaderMetric

	// Observe, if not nil, is called by Run's goroutine with each change of phase. It must be quick.
	Observe func(Transition)
}

// LeaderCallbacks are what an elector calls. Apart from what is said below, they are called without locks.
type LeaderCallbacks struct {
	// OnStartedLeading does the work of a leader, in a goroutine of its own. Its context is done when Run's is, and when the
	// term is over: when the lease is lost, before another candidate may lead. In that case context.Cause is an ErrLost. It
	// should return soon after that. If it returns earlier, the lease is held all the same.
	//
	// After Run's context is done, the lease is renewed until OnStartedLeading has returned, but it can still be lost. To
	// wind up in that time, use TermContext, not a context that never ends: its end is the end of the right to act.
	// FencingTokenFromContext returns the term's token.
	OnStartedLeading func(ctx context.Context)

	// OnStoppedLeading is called once after each OnStartedLeading, by Run's goroutine. If the lease was lost, that is at
	// once, while the work may still be returning: a process that cannot stop its work can exit here. Otherwise the work
	// has returned and the lease is released.
	OnStoppedLeading func()

	// OnNewLeader, which may be nil, is told of each holder that is seen, this candidate included, in order, in another
	// goroutine. "" means nobody.
	OnNewLeader func(identity string)
}

// ErrLost is why the context of OnStartedLeading is done if the lease was lost. context.Cause returns an error that wraps it.
var ErrLost = errors.New("leader election lost")

// validate has client-go's texts.
//
// Source: tools/leaderelection/leaderelection.go NewLeaderElector
func (c *LeaderElectionConfig) validate() error {
	switch {
	case c.LeaseDuration <= c.RenewDeadline:
		return errors.New("leaseDuration must be greater than renewDeadline")
	case c.RenewDeadline <= time.Duration(JitterFactor*float64(c.RetryPeriod)):
		return errors.New("renewDeadline must be greater than retryPeriod*JitterFactor")
	case c.LeaseDuration < 1:
		return errors.New("leaseDuration must be greater than zero")
	case c.RenewDeadline < 1:
		return errors.New("renewDeadline must be greater than zero")
	case c.RetryPeriod < 1:
		return errors.New("retryPeriod must be greater than zero")
	case c.Callbacks.OnStartedLeading == nil:
		return errors.New("OnStartedLeading callback must not be nil")
	case c.Callbacks.OnStoppedLeading == nil:
		return errors.New("OnStoppedLeading callback must not be nil")
	case c.Lock == nil:
		//lint:ignore ST1005 client-go's text
		return errors.New("Lock must not be nil.")
	case c.Lock.Identity() == "":
		//lint:ignore ST1005 client-go's text
		return errors.New("Lock identity is empty")
	case c.Rejoin && c.AbandonWork:
		return errors.New("options Rejoin and AbandonWork exclude each other: two terms' work must not run at once")
	}
	return nil
}

// leaseSeconds is the duration in the record. 0 would mean no lease at all.
func (c *LeaderElectionConfig) leaseSeconds() int {
	return int((c.LeaseDuration + time.Second - 1) / time.Second)
}

// hold is how long a leader leads after a renewal: until the next was due and could not be had for RenewDeadline, but never
// longer than others wait.
func (c *LeaderElectionConfig) hold() time.Duration {
	return min(c.RetryPeriod+c.RenewDeadline, c.LeaseDuration)
}

// RunOrDie runs an elector, and panics if config is invalid.
//
// Source: tools/leaderelection/leaderelection.go RunOrDie
func RunOrDie(ctx context.Context, config LeaderElectionConfig) {
	elector, err := NewLeaderElector(config)
	if err != nil {
		panic(err)
	}
	if config.WatchDog != nil {
		config.WatchDog.SetLeaderElection(elector)
	}
	elector.Run(ctx)
}
