// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

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

var (
	errNoElection = errors.New("this process has no election of the laboratory")
	errNoLeader   = errors.New("there is no leader")
)

// election runs two candidates in this process, so that the reader sees a leader fail and the other
// take over.
//
//	L1  at most one candidate works at a time
//	L2  a killed or paused candidate does not release the lease: the other waits until it expires
type election struct {
	candidates []*candidate
	working    chan struct{} // L1: capacity 1, holds a value while a candidate works
	fence      fence
}

// candidate is one elector that can be killed and paused.
type candidate struct {
	identity string
	elector  *leaderelection.LeaderElector
	lock     *faultyLock

	mu   sync.Mutex
	kill func() // ends the run of the elector; nil if it does not run
}

// Elect adds an election between two candidates on the cluster of config. Its Lead is the lab's.
func (l *Lab) Elect(config *rest.Config) error {
	e := &election{working: make(chan struct{}, 1)}
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
		return errNoElection
	}
	var running sync.WaitGroup
	for _, c := range e.candidates {
		running.Go(func() {
			c.run(ctx, func(term context.Context) {
				select {
				case e.working <- struct{}{}:
				case <-term.Done():
					return
				}
				defer func() { <-e.working }()
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
	c := &candidate{identity: identity, lock: &faultyLock{Interface: lock}}
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

func (c *candidate) runs() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kill != nil
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

// clockSkew is how far the clock of a leader is ahead after the fault skew.
const clockSkew = time.Hour

// apply kills or pauses the leader, sets its clock an hour ahead, or ends the faults of all
// candidates.
func (e *election) apply(fault string) error {
	leader := e.leader()
	if leader == nil && fault != "resume" {
		return errNoLeader
	}
	switch fault {
	case "kill":
		leader.killNow()
	case "pause":
		e.fence.keep(leader.elector.Status().Token)
		leader.lock.pause()
	case "skew":
		leader.lock.setSkew(clockSkew)
	case "resume":
		for _, c := range e.candidates {
			c.lock.resume()
			c.lock.setSkew(0)
		}
	default:
		return fmt.Errorf("leader fault %q: want kill, pause, skew or resume", fault)
	}
	return nil
}

// view describes the election. The lab has two candidates in one process: identity is the first.
func (e *election) view(now time.Time) ElectionView {
	if e == nil {
		return ElectionView{
			Candidates: []string{}, PausedNames: []string{}, States: map[string]string{},
			Observed: map[string]float64{},
		}
	}
	v := ElectionView{
		On: true, Identity: e.candidates[0].identity, DurationMs: milliseconds(leaseDuration),
		PausedNames: []string{}, States: map[string]string{}, Observed: map[string]float64{},
		Fence: e.fence.view(),
	}
	for _, c := range e.candidates {
		v.Candidates = append(v.Candidates, c.identity)
		if c.lock.isPaused() {
			v.Paused, v.PausedNames = true, append(v.PausedNames, c.identity)
		}
		s := c.elector.Status()
		if v.Leader == "" {
			v.Leader = s.Leader
		}
		v.States[c.identity] = c.state(s)
		if v.States[c.identity] == leadsState {
			v.Leader, v.Token = c.identity, s.Token.Transitions
			v.Leading = c == e.candidates[0]
			v.LeftMs = milliseconds(max(0, s.LastRenewal.Add(leaseDuration).Sub(now)))
			v.RenewedMs = milliseconds(now.Sub(c.lock.renewTime()))
		} else if seen := c.lock.observedTime(); c.looks() && !seen.IsZero() && s.Leader != c.identity {
			v.ObservedMs = milliseconds(now.Sub(seen))
			v.Observed[c.identity] = v.ObservedMs
		}
	}
	return v
}

// The states of a candidate.
const (
	leadsState   = "leads"
	holdsState   = "holds" // the lease that it has seen last names it, but it does not lead
	waitsState   = "waits"
	stoppedState = "stopped" // it was killed, and has not started again
)

func (c *candidate) state(s leaderelection.Status) string {
	switch {
	case c.elector.IsLeader():
		return leadsState
	case !c.runs():
		return stoppedState
	case s.Leader == c.identity:
		return holdsState
	}
	return waitsState
}

// looks reports whether the candidate looks at the lease: it runs, and is not paused.
func (c *candidate) looks() bool { return c.runs() && !c.lock.isPaused() }
