// SPDX-License-Identifier: Apache-2.0

package leaderelection

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"

	"example.com/informerstack/leaderelection/resourcelock"
)

// ErrRunning is what Lead returns, and Run logs, while the elector runs already.
var ErrRunning = errors.New("leader elector is running already")

// errEnded is why a term ended that was not lost.
var errEnded = errors.New("leader elector has stopped leading")

// conflictPause is the time between two tries to release a lease that is being written by somebody.
const conflictPause = 10 * time.Millisecond

// LeaderElector is one candidate.
//
//	E1  the lease is written only if the record that is replaced names this candidate or nobody, or has not changed for its
//	    duration by this candidate's clock; somebody else's record is never overwritten before
//	E2  work begins in a valid term, and not before the work of the term before has returned, unless AbandonWork is set
//	E3  OnStoppedLeading is called once after each OnStartedLeading
//	E4  the lease is released after the work has returned, unless AbandonWork is set
//	E5  there is a term iff the phase is Leading, Finishing or Stopping, or Releasing after one of these
//
// Run and Lead are for one goroutine at a time; the other methods may be called at any time from any.
//
// Source: tools/leaderelection/leaderelection.go LeaderElector
type LeaderElector struct {
	config   LeaderElectionConfig
	now      func() clockReading
	jitter   func() float64 // from 0 to 1
	notifier notifier

	running atomic.Bool

	// Below: of Run's goroutine.

	work    func(context.Context) // OnStartedLeading, or Lead's
	won     win                   // the write that made it the leader, before there is a term
	raw     []byte                // the record's bytes as they were last read; nil if they are not known
	inDoubt bool                  // whether a write of a candidate may have been done although it failed
	left    bool                  // whether the term's end was made known
	due     time.Time             // when the next renewal is

	mu         sync.Mutex
	term       *term                             // of which E5 speaks; only Run's goroutine changes it
	observed   resourcelock.LeaderElectionRecord // as last read or written
	observedAt time.Time                         // when it was first seen
	answerable bool                              // whether Check watches over the renewals
	status     Status
}

// win is a write that gave the lease to this candidate.
type win struct {
	sent  clockReading
	token FencingToken
}

// NewLeaderElector returns a candidate that does nothing before Run. It fails if config is invalid.
//
// Source: tools/leaderelection/leaderelection.go NewLeaderElector
func NewLeaderElector(config LeaderElectionConfig) (*LeaderElector, error) {
	if err := config.validate(); err != nil {
		return nil, err
	}
	e := &LeaderElector{
		config:   config,
		now:      readClocks,
		jitter:   rand.Float64,
		notifier: notifier{notify: config.Callbacks.OnNewLeader},
		status:   Status{Phase: Idle},
	}
	e.metricOff()
	return e, nil
}

// Run is a candidate until it has the lease, and then a leader until it loses it or ctx is done, whichever comes first. With
// Rejoin only ctx ends it. When Run has returned, it can be called again; calls while it runs log ErrRunning and return.
//
// Unless AbandonWork is set, Run returns after the work has.
func (e *LeaderElector) Run(ctx context.Context) {
	if err := e.run(ctx, e.config.Callbacks.OnStartedLeading); errors.Is(err, ErrRunning) {
		klog.FromContext(ctx).Error(err, "Leader election not started", "lock", e.config.Lock.Describe())
	}
}

// Lead is Run with work in place of OnStartedLeading; a controller's Options.Lead takes it. work's context is the one that
// OnStartedLeading describes. Lead returns nil once ctx is done. It returns ErrLost if the lease was lost before that and
// Rejoin is not set, and ErrRunning if the elector runs already.
func (e *LeaderElector) Lead(ctx context.Context, work func(ctx context.Context)) error {
	return e.run(ctx, work)
}

func (e *LeaderElector) run(ctx context.Context, work func(context.Context)) error {
	defer utilruntime.HandleCrashWithContext(ctx)
	if !e.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer e.running.Store(false)
	e.work = work
	led := false
	defer func() {
		if !led && e.config.AlwaysStopped {
			e.config.Callbacks.OnStoppedLeading()
		}
	}()
	defer e.drop() // if a callback or the lock panics

	// These words, and those of begin, are client-go's: people search their logs for them.
	klog.FromContext(ctx).Info("Attempting to acquire leader lease...", "lock", e.config.Lock.Describe())
	for phase := Acquiring; phase != Idle; {
		e.setPhase(phase)
		t := e.step(ctx, phase)
		t.From = phase
		led = led || t.To == Leading
		if t.To == Acquiring || t.To == Idle {
			e.forget()
		}
		e.note(ctx, t)
		phase = t.To
	}
	if ctx.Err() == nil {
		return ErrLost
	}
	return nil
}

// acquire tries to take the lease until it has it, or ctx is done.
func (e *LeaderElector) acquire(ctx context.Context) error {
	e.inDoubt = false
	for ctx.Err() == nil {
		limited, cancel := context.WithTimeout(ctx, e.config.RenewDeadline)
		err := e.attempt(limited)
		cancel()
		e.notifier.seen(e.observed.HolderIdentity)
		if err == nil {
			return nil
		}
		e.noteFailure(ctx, err)
		wait := e.config.RetryPeriod
		wait += time.Duration(e.jitter() * JitterFactor * float64(wait))
		if !sleep(ctx, wait) {
			break
		}
	}
	return context.Cause(ctx)
}

// sleep waits for d, and reports whether it did to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// begin starts a term, and its work.
func (e *LeaderElector) begin(ctx context.Context) {
	t := newTerm(ctx, &e.config, e.now, e.won)
	e.mu.Lock()
	e.term, e.answerable = t, true
	e.status.Terms++
	e.mu.Unlock()
	e.left = false
	e.due = e.won.sent.mono.Add(e.config.RetryPeriod)
	e.config.Lock.RecordEvent("became leader")
	e.metricOn()
	klog.FromContext(ctx).Info("Successfully acquired lease", "lock", e.config.Lock.Describe(), "token", e.won.token)
	t.start(ctx, e.work)
}

// leave makes the end of the term known, once.
func (e *LeaderElector) leave() {
	if e.term == nil || e.left {
		return
	}
	e.left = true
	e.term.end(errEnded)
	e.config.Lock.RecordEvent("stopped leading")
	e.metricOff()
	e.config.Callbacks.OnStoppedLeading()
}

// forget closes the term, if there was one. Abandoned work stays Check's concern until somebody else has the lease.
func (e *LeaderElector) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.term = nil
	e.answerable = e.answerable && e.config.AbandonWork
}

// drop is what is left to do if Run's goroutine ends in the middle, because a callback or the lock panicked.
func (e *LeaderElector) drop() {
	defer e.setPhase(Idle)
	defer e.forget()
	e.leave()
}

// release gives the lease back, if it is still this candidate's. A conflict means that the record has changed, perhaps by a
// renewal that was cancelled too late: it is looked at again.
//
// Source: tools/leaderelection/leaderelection.go LeaderElector
func (e *LeaderElector) release(ctx context.Context) error {
	if e.term != nil {
		e.term.end(errEnded)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.config.RenewDeadline)
	defer cancel()
	for {
		record, raw, err := e.config.Lock.Get(ctx)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("release lease %s: %w", e.config.Lock.Describe(), err)
		}
		e.observe(record, raw)
		if record.HolderIdentity != e.config.Lock.Identity() {
			return nil
		}
		now := metav1.NewTime(e.now().wall)
		free := resourcelock.LeaderElectionRecord{
			LeaseDurationSeconds: 1,
			AcquireTime:          now,
			RenewTime:            now,
			LeaderTransitions:    record.LeaderTransitions,
		}
		err = e.config.Lock.Update(ctx, free)
		if err == nil {
			e.observe(&free, nil)
			return nil
		}
		if !apierrors.IsConflict(err) || !sleep(ctx, conflictPause) {
			return fmt.Errorf("release lease %s: %w", e.config.Lock.Describe(), err)
		}
	}
}

// IsLeader reports whether this candidate leads now. It reads the clocks: it returns false once the
// lease was not renewed in time, whether or not the elector has noticed.
func (e *LeaderElector) IsLeader() bool {
	e.mu.Lock()
	t := e.term
	e.mu.Unlock()
	return t != nil && t.valid()
}

// GetLeader returns the holder that was last seen, "" if there was none. It may have changed since.
func (e *LeaderElector) GetLeader() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.observed.HolderIdentity
}

// Check returns an error if the lease was not renewed for maxTolerableExpiredLease longer than its duration, and the work
// may be going on: Run should have ended it. For everybody else it returns nil.
//
// Source: tools/leaderelection/leaderelection.go LeaderElector
func (e *LeaderElector) Check(maxTolerableExpiredLease time.Duration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.answerable && time.Since(e.status.LastRenewal) > e.config.LeaseDuration+maxTolerableExpiredLease {
		return fmt.Errorf("failed election to renew leadership on lease %s", e.config.Name)
	}
	return nil
}
