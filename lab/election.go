// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"example.com/informerstack/leaderelection"
	"example.com/informerstack/leaderelection/resourcelock"
)

// The durations of the election. They are short, so that a reader sees a lease expire.
const (
	leaseDuration = 8 * time.Second
	renewDeadline = 5 * time.Second
	retryPeriod   = time.Second
)

// The lock object of the election.
const (
	lockNamespace = "kube-system"
	lockName      = "informerstack-laboratory"
)

// election runs two candidates in this process, so that the reader sees a leader fail and the other
// take over.
//
//	L1  at most one candidate works at a time
//	L2  a killed or paused candidate does not release the lease: the other waits until it expires
type election struct {
	candidates []*candidate
	working    sync.Mutex // L1
}

// candidate is one elector that can be killed and paused.
type candidate struct {
	identity string
	elector  *leaderelection.LeaderElector
	lock     *pausableLock

	mu   sync.Mutex
	kill func() // ends the run of the elector; nil if it does not run
}

// Elect adds an election between two candidates on the cluster of config. Its Lead is the lab's.
func (l *Lab) Elect(config *rest.Config) error {
	e := &election{}
	for _, identity := range []string{"a", "b"} {
		c, err := newCandidate(config, identity)
		if err != nil {
			return err
		}
		e.candidates = append(e.candidates, c)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.election = e
	return nil
}

// Lead is for controller.Options.Lead: it calls work while one of the candidates leads.
func (l *Lab) Lead(ctx context.Context, work func(context.Context)) error {
	e := l.elected()
	if e == nil {
		return errors.New("the laboratory has no election")
	}
	var running sync.WaitGroup
	for _, c := range e.candidates {
		running.Go(func() {
			c.run(ctx, func(term context.Context) {
				e.working.Lock()
				defer e.working.Unlock()
				if term.Err() == nil {
					work(term)
				}
			})
		})
	}
	running.Wait()
	return nil
}

func (l *Lab) elected() *election {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.election
}

func newCandidate(config *rest.Config, identity string) (*candidate, error) {
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock,
		lockNamespace, lockName, resourcelock.ResourceLockConfig{Identity: identity}, config,
		renewDeadline)
	if err != nil {
		return nil, fmt.Errorf("make lock of candidate %s: %w", identity, err)
	}
	c := &candidate{identity: identity, lock: &pausableLock{Interface: lock}}
	c.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:          c.lock,
		Name:          lockName,
		LeaseDuration: leaseDuration,
		RenewDeadline: renewDeadline,
		RetryPeriod:   retryPeriod,
		Rejoin:        true,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) {},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make candidate %s: %w", identity, err)
	}
	return c, nil
}

// run runs the elector until ctx is done. After a kill, the elector starts again when the other
// candidate has had the time to take the lease.
func (c *candidate) run(ctx context.Context, work func(context.Context)) {
	for ctx.Err() == nil {
		alive, kill := context.WithCancel(ctx)
		c.setKill(kill)
		_ = c.elector.Lead(alive, work)
		kill()
		c.setKill(nil)
		wait(ctx, 2*leaseDuration, nil)
	}
}

func (c *candidate) setKill(kill func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kill = kill
}

func (c *candidate) killNow() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kill != nil {
		c.kill()
	}
}

// leader returns the candidate that leads, or nil.
func (e *election) leader() *candidate {
	for _, c := range e.candidates {
		if c.elector.IsLeader() {
			return c
		}
	}
	return nil
}

// apply kills or pauses the leader, or resumes the paused candidates.
func (e *election) apply(fault string) error {
	leader := e.leader()
	if leader == nil && fault != "resume" {
		return errors.New("there is no leader")
	}
	switch fault {
	case "kill":
		leader.killNow()
	case "pause":
		leader.lock.pause()
	case "resume":
		for _, c := range e.candidates {
			c.lock.resume()
		}
	default:
		return fmt.Errorf("leader fault %q: want kill, pause or resume", fault)
	}
	return nil
}

// view describes the election. The lab has two candidates in one process: identity is the first.
func (e *election) view(now time.Time) ElectionView {
	if e == nil {
		return ElectionView{Candidates: []string{}}
	}
	v := ElectionView{
		On: true, Identity: e.candidates[0].identity, DurationMs: milliseconds(leaseDuration),
	}
	for _, c := range e.candidates {
		v.Candidates = append(v.Candidates, c.identity)
		v.Paused = v.Paused || c.lock.isPaused()
		s := c.elector.Status()
		if v.Leader == "" {
			v.Leader = s.Leader
		}
		if c.elector.IsLeader() {
			v.Leader, v.Token = c.identity, s.Token.Transitions
			v.Leading = c == e.candidates[0]
			v.LeftMs = milliseconds(max(0, s.LastRenewal.Add(leaseDuration).Sub(now)))
		}
	}
	return v
}

// pausableLock is a lock whose requests wait while it is paused, as those of a process that the
// kernel has stopped.
type pausableLock struct {
	resourcelock.Interface

	mu      sync.Mutex
	resumed chan struct{} // closed by resume; nil while not paused
}

func (l *pausableLock) pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resumed == nil {
		l.resumed = make(chan struct{})
	}
}

func (l *pausableLock) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.resumed != nil {
		close(l.resumed)
		l.resumed = nil
	}
}

func (l *pausableLock) isPaused() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.resumed != nil
}

// wait returns when the lock is not paused, or ctx is done.
func (l *pausableLock) wait(ctx context.Context) error {
	l.mu.Lock()
	resumed := l.resumed
	l.mu.Unlock()
	if resumed == nil {
		return nil
	}
	select {
	case <-resumed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the candidate is paused: %w", ctx.Err())
	}
}

// Get reads the lock when it is not paused.
func (l *pausableLock) Get(
	ctx context.Context,
) (*resourcelock.LeaderElectionRecord, []byte, error) {
	if err := l.wait(ctx); err != nil {
		return nil, nil, err
	}
	return l.Interface.Get(ctx)
}

// Create writes the lock when it is not paused.
func (l *pausableLock) Create(
	ctx context.Context, record resourcelock.LeaderElectionRecord,
) error {
	if err := l.wait(ctx); err != nil {
		return err
	}
	return l.Interface.Create(ctx, record)
}

// Update writes the lock when it is not paused.
func (l *pausableLock) Update(
	ctx context.Context, record resourcelock.LeaderElectionRecord,
) error {
	if err := l.wait(ctx); err != nil {
		return err
	}
	return l.Interface.Update(ctx, record)
}

// UID returns the UID of the lock object, for the fencing token.
func (l *pausableLock) UID() types.UID {
	if identified, ok := l.Interface.(resourcelock.Identified); ok {
		return identified.UID()
	}
	return ""
}
