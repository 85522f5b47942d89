// SPDX-License-Identifier: Apache-2.0

// Package leaderelection lets one of several processes work at a time: the holder of a lease.
//
//	API server <- get, create, update - resourcelock <- [leaderelection] -> LeaderCallbacks
//
// To use it, make a lock with resourcelock.NewFromKubeconfig, and call [RunOrDie] with it and the
// callbacks, or give [LeaderElector.Lead] to a controller as its Options.Lead. Work in
// OnStartedLeading, and return when its context ends. Every process needs an identity of its own.
//
// A candidate takes the lease if its record has not changed for the lease's duration, by the
// candidate's own clock. Several may try, but the server refuses writes of an old version, so one
// of them wins. The holder writes the record again every RetryPeriod, and stops working before
// others may take the lease. Clocks are never compared, so they may differ. But they must run at
// about the same speed: a candidate's clock may be faster than the leader's by a twentieth, or, if
// answers take less than RetryPeriod, by the ratio of LeaseDuration to RenewDeadline+RetryPeriod.
//
// No election can prevent a process from pausing between a look at the clock and its next action.
// After a pause, the context of the work, IsLeader and FencingTokenFromContext return the correct
// answer at the first call. If the work writes without such a call, only the receiver can refuse
// the write, by the fencing token. A virtual machine that is suspended together with its clocks
// cannot notice the pause at all.
//
// Read config.go, phase.go (the state machine), elector.go, attempt.go (one attempt to get or keep
// the lease), renew.go, term.go (how a leader knows that it still leads), clock.go, fencing.go;
// package resourcelock reads and writes the record. candidate.go and candidateclient.go are only
// for coordinated elections. Then go test -v ./leaderelection.
//
// Goroutines: Run's caller makes all requests. OnStartedLeading has a goroutine, and so has
// OnNewLeader while calls are pending. A timer checks the term. All except OnNewLeader's have ended
// when Run returns. Locking: the elector's mu guards the results of its methods, the term's mu
// guards its end. No callback runs under them.
//
// Source: tools/leaderelection/leaderelection.go LeaderElector
package leaderelection

import (
	"context"
	"errors"
	"time"

	"example.com/informerstack/leaderelection/resourcelock"
)

// JitterFactor spreads the attempts of candidates: after each, they wait RetryPeriod and a random
// time of up to JitterFactor times RetryPeriod.
const JitterFactor = 1.2

// A leader stops at least one clockMargin-th of LeaseDuration before others may take the lease.
const clockMargin = 20

// LeaderElectionConfig configures an elector. Usual values of the three durations are 15 s, 10 s
// and 2 s.
type LeaderElectionConfig struct {
	// Lock is the lease, and has this candidate's identity.
	Lock resourcelock.Interface

	// LeaseDuration is how long a record must be unchanged before candidates take the lease. The
	// record has it rounded up to seconds; candidates use the record's, not their own.
	LeaseDuration time.Duration
	// RenewDeadline is how long a leader tries to renew the lease, from when the renewal is due,
	// before it stops leading. It must be less than LeaseDuration. A renewal counts from when it
	// was sent, and for 19/20 of LeaseDuration at most: the lease is lost if each answer takes half
	// of that or longer.
	RenewDeadline time.Duration
	// RetryPeriod is the time between two attempts, of candidates (see JitterFactor) and of the
	// leader, whose attempts follow up to a tenth sooner, at random.
	RetryPeriod time.Duration

	Callbacks LeaderCallbacks

	// WatchDog, if not nil, checks the elector that RunOrDie makes.
	WatchDog *HealthzAdaptor

	// ReleaseOnCancel releases the lease when Run ends, so that the next leader need not wait until
	// it expires.
	ReleaseOnCancel bool

	// Name of the lease, for metrics and Check.
	Name string

	// Coordinated lets the cluster's coordinator assign the lease (coordinated leader election, an
	// alpha feature): the candidate never takes it, and stops leading when the coordinator prefers
	// another.
	Coordinated bool

	// The following options are not client-go's.

	// Rejoin makes Run continue as a candidate after it has lost the lease, until its context is
	// done. OnStartedLeading is called once in each term, after the call of the last term has
	// returned.
	Rejoin bool

	// AbandonWork makes Run return, and release the lease, while OnStartedLeading still runs, as
	// client-go does. Otherwise, and in Lead, the lease is renewed until the work has returned, and
	// released then. It excludes Rejoin.
	AbandonWork bool

	// AlwaysStopped calls OnStoppedLeading even when Run returns without having led, as client-go
	// does.
	AlwaysStopped bool

	// Metrics, if not nil, receives this elector's metrics.
	Metrics LeaderMetric

	// Observe, if not nil, is called by Run's goroutine with each change of phase. It must be
	// quick.
	Observe func(Transition)
}

// LeaderCallbacks are what an elector calls. No lock is held.
type LeaderCallbacks struct {
	// OnStartedLeading does the work of a leader, in a goroutine of its own. Its context is done
	// when Run's is, or when the lease is lost, before another candidate may lead: context.Cause is
	// then an ErrLost. It should return soon after that. If it returns earlier, the lease is held
	// all the same.
	//
	// After Run's context is done, the lease is renewed until OnStartedLeading has returned, but it
	// can still be lost. To wind up in that time, use TermContext, not a context that never ends.
	// FencingTokenFromContext returns the term's token.
	OnStartedLeading func(ctx context.Context)

	// OnStoppedLeading is called once after each OnStartedLeading, by Run's goroutine. After a loss
	// it is called at once, while the work may still run: a process that cannot stop its work can
	// exit here. Otherwise the work has returned and the lease is released.
	OnStoppedLeading func()

	// OnNewLeader, which may be nil, is called with each new holder, this candidate included, in
	// order, in a goroutine of its own. "" means that the lease has no holder.
	OnNewLeader func(identity string)
}

// ErrLost is why the context of OnStartedLeading is done if the lease was lost. context.Cause
// returns an error that wraps it.
var ErrLost = errors.New("leader election lost")

// validate returns errors with client-go's texts.
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
		return errors.New("options Rejoin and AbandonWork exclude each other: " +
			"two terms' work must not run at once")
	}
	return nil
}

// leaseSeconds is LeaseDuration in the record, rounded up: 0 would mean no lease at all.
func (c *LeaderElectionConfig) leaseSeconds() int {
	return int((c.LeaseDuration + time.Second - 1) / time.Second)
}

// hold is how long a leader leads after it sent a renewal to which the answer took that long: until
// the next one has been due for RenewDeadline, but never longer than right.
func (c *LeaderElectionConfig) hold(took time.Duration) time.Duration {
	return min(max(took, c.RetryPeriod)+c.RenewDeadline, c.right())
}

// right is how long the right to act lasts after a renewal was sent. Others wait for LeaseDuration
// from when they have read the record, which is later. The rest is for clocks that run faster than
// the leader's.
func (c *LeaderElectionConfig) right() time.Duration {
	return c.LeaseDuration - c.LeaseDuration/clockMargin
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
