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

	"example.com/informerstack/internal/helpers/done"
	"example.com/informerstack/leaderelection/resourcelock"
)

// ErrRunning is what Lead returns, and Run logs, while the elector runs already.
var ErrRunning = errors.New("leader elector is running already")

// errEnded ends a term that was not lost.
var errEnded = errors.New("leader elector has stopped leading")

// conflictPause is the first wait between two attempts to release a lease that another client
// writes. Each wait is twice as long as the one before.
const conflictPause = 10 * time.Millisecond

// LeaderElector is one candidate.
//
//	E1  the lease is written only if the replaced record names this candidate or no holder, or has
//	    not changed for its duration by this candidate's clock
//	E2  work begins in a valid term, and not before the work of the last term has returned, unless
//	    Run abandons it
//	E3  OnStoppedLeading is called once after each OnStartedLeading
//	E4  the lease is released after the work has returned, unless Run abandons it, and always
//	    after the term's context is done
//	E5  there is a term iff the phase is Leading, Finishing or Stopping, or Releasing after one of
//	    these
//
// Run and Lead are for one goroutine at a time. The other methods are safe for concurrent use.
//
// Source: tools/leaderelection/leaderelection.go LeaderElector
type LeaderElector struct {
	config   LeaderElectionConfig
	now      func() clockReading
	jitter   func() float64 // from 0 to 1
	notifier notifier

	running atomic.Bool

	// The fields up to mu belong to Run's goroutine.

	work     func(context.Context) // OnStartedLeading, or Lead's
	abandons bool                  // AbandonWork, in Run
	won      win                   // the write that won the lease, before there is a term
	raw      []byte                // the bytes of the record that was last read; nil if not known
	known    bool                  // the lock knows the version of observed, and no other
	inDoubt  bool                  // in Acquiring: the server may have done a write that failed
	ended    bool                  // leave has been called in this term
	// when the last write that changed RenewTime was sent; zero once a write was answered
	unanswered clockReading
	due        time.Time // when the next renewal is

	mu         sync.Mutex
	term       *term                             // see E5; only Run's goroutine changes it
	observed   resourcelock.LeaderElectionRecord // as last read or written
	observedAt time.Time                         // when it was first seen
	checked    bool                              // Check watches the renewals: see forget
	status     Status
}

// win is a write that gave the lease to this candidate.
type win struct {
	sent  clockReading
	took  time.Duration // until the answer was there
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
		status:   Status{Phase: Idle, RetryPeriod: config.RetryPeriod},
	}
	e.metricOff()
	return e, nil
}

// Run waits for the lease, and leads until the lease is lost or ctx is done. With Rejoin, it
// continues as a candidate after a loss, and only ctx ends it. When Run has returned, it can be
// called again; calls while it runs log ErrRunning and return.
//
// Unless AbandonWork is set, Run returns after the work has returned.
func (e *LeaderElector) Run(ctx context.Context) {
	err := e.run(ctx, e.config.Callbacks.OnStartedLeading, e.config.AbandonWork)
	if errors.Is(err, ErrRunning) {
		klog.FromContext(ctx).Error(
			err, "Leader election not started", "lock", e.config.Lock.Describe(),
		)
	}
}

// Lead is Run with work in place of OnStartedLeading, and with the same context for it. A
// controller's Options.Lead takes this method. Lead returns after the work has returned, whether or
// not AbandonWork is set: nil once ctx is done, ErrLost if the lease was lost before that and
// Rejoin is not set, and ErrRunning if the elector runs already.
func (e *LeaderElector) Lead(ctx context.Context, work func(ctx context.Context)) error {
	return e.run(ctx, work, false)
}

func (e *LeaderElector) run(
	ctx context.Context, work func(context.Context), abandons bool,
) error {
	defer utilruntime.HandleCrashWithContext(ctx)
	if !e.running.CompareAndSwap(false, true) {
		return ErrRunning
	}
	defer e.running.Store(false)
	e.work, e.abandons = work, abandons
	led := false
	defer func() {
		if !led && e.config.AlwaysStopped {
			e.config.Callbacks.OnStoppedLeading()
		}
	}()
	defer e.drop() // if a callback or the lock panics

	// People search their logs for client-go's texts. This one is client-go's, and so are those in
	// begin and in note.
	klog.FromContext(ctx).Info(
		"Attempting to acquire leader lease...", "lock", e.config.Lock.Describe(),
	)
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

// acquire tries to take the lease until it succeeds or ctx is done.
func (e *LeaderElector) acquire(ctx context.Context) error {
	e.inDoubt = false
	for ctx.Err() == nil {
		err := e.attempt(ctx)
		e.notifier.seen(e.observed.HolderIdentity)
		if err == nil {
			return nil
		}
		e.noteFailure(ctx, err)
		done.Sleep(ctx, e.untilNextAttempt(err))
	}
	return context.Cause(ctx)
}

// untilNextAttempt is how long a candidate waits after an attempt that failed with err: a random
// time, but not beyond the expiry of the lease that was read. A lease that is shorter than
// RetryPeriod does not make it try more often.
func (e *LeaderElector) untilNextAttempt(err error) time.Duration {
	wait := e.config.RetryPeriod
	wait += time.Duration(e.jitter() * JitterFactor * float64(wait))
	left := max(time.Until(e.expiry()), e.config.RetryPeriod-time.Since(e.observedAt))
	if errors.Is(err, errNotFree) && !e.config.Coordinated {
		wait = min(wait, left)
	}
	return wait
}

// begin starts a term, and its work.
func (e *LeaderElector) begin(ctx context.Context) {
	t := newTerm(ctx, &e.config, e.now, e.won)
	e.mu.Lock()
	e.term, e.checked = t, true
	e.status.Terms++
	e.mu.Unlock()
	e.ended = false
	e.due = e.nextRenewal(e.won.sent.mono)
	e.config.Lock.RecordEvent("became leader")
	e.metricOn()
	klog.FromContext(ctx).Info("Successfully acquired lease",
		"lock", e.config.Lock.Describe(), "token", e.won.token)
	t.start(ctx, e.work)
}

// leave ends the term if it is not over, and reports its end, once.
func (e *LeaderElector) leave() {
	if e.term == nil || e.ended {
		return
	}
	e.ended = true
	e.term.end(errEnded)
	e.config.Lock.RecordEvent("stopped leading")
	e.metricOff()
	e.config.Callbacks.OnStoppedLeading()
}

// forget drops the term, if there was one. The work has returned by then, so Check need not watch
// the renewals any more. Abandoned work may not have returned: Check watches on, until another
// candidate holds the lease.
func (e *LeaderElector) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.term = nil
	e.checked = e.checked && e.abandons
}

// drop cleans up when Run returns. It has something to do only if a callback or the lock panicked.
func (e *LeaderElector) drop() {
	defer e.setPhase(Idle)
	defer e.forget()
	e.leave()
}

// release clears the lease's record if it still names this candidate. A conflict means that the
// record has changed, perhaps by a renewal that was cancelled too late: it is read again.
//
// Source: tools/leaderelection/leaderelection.go LeaderElector
func (e *LeaderElector) release(ctx context.Context) error {
	if e.term != nil {
		e.term.end(errEnded)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), e.config.RenewDeadline)
	defer cancel()
	for pause := conflictPause; ; pause *= 2 {
		record, raw, err := e.read(ctx)
		if apierrors.IsNotFound(err) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("release lease %s: %w", e.config.Lock.Describe(), err)
		}
		e.observe(record, raw)
		mine := record.HolderIdentity == e.config.Lock.Identity()
		// If only the primary of a MultiLock was made anew, the token is another one, but the time
		// is that of the renewal before, which the secondary has.
		if !mine || e.term != nil && !e.ofTerm(record) && !isOf(record, e.term.lastRenewal()) {
			return nil
		}
		now := metav1.NewTime(e.now().wall)
		free := resourcelock.LeaderElectionRecord{
			LeaseDurationSeconds: 1,
			AcquireTime:          now,
			RenewTime:            now,
			LeaderTransitions:    record.LeaderTransitions,
		}
		e.known = false // a MultiLock may write one half
		err = e.config.Lock.Update(ctx, free)
		if err == nil {
			e.observe(&free, nil)
			return nil
		}
		if !apierrors.IsConflict(err) || !done.Sleep(ctx, pause) {
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

// GetLeader returns the holder that was last seen, or "" if no holder was seen.
func (e *LeaderElector) GetLeader() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.observed.HolderIdentity
}

// Check returns an error if a leader has not renewed its lease for maxTolerableExpiredLease longer
// than the lease's duration, and its work may still run. In a candidate it returns nil.
//
// Source: tools/leaderelection/leaderelection.go LeaderElector
func (e *LeaderElector) Check(maxTolerableExpiredLease time.Duration) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	limit := e.config.LeaseDuration + maxTolerableExpiredLease
	if e.checked && time.Since(e.status.LastRenewal) > limit {
		return fmt.Errorf("failed election to renew leadership on lease %s", e.config.Name)
	}
	return nil
}
