// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
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
//	L2  only a candidate that is released or races releases the lease: after another fault, the
//	    other one waits until it expires
type election struct {
	candidates []*candidate
	race       startLine
	writes     leaseWrites
	working    chan struct{} // L1: capacity 1, holds a value while a candidate works
	fence      fence
}

// candidate is one elector that can be killed and paused.
type candidate struct {
	identity string
	elector  *leaderelection.LeaderElector
	lock     *faultyLock

	mu      sync.Mutex
	kill    func() // ends the run of the elector; nil if it does not run
	in      bool   // it runs, and has not been stopped
	works   bool
	returns bool // at once, after the run
}

// Elect adds an election between two candidates on the cluster of config. Its Lead is the lab's.
func (l *Lab) Elect(config *rest.Config) error {
	e := &election{working: make(chan struct{}, 1)}
	for _, identity := range []string{"a", "b"} {
		c, err := e.newCandidate(config, identity)
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
					l.present().term()
					work(term)
				}
			})
		})
	}
	running.Wait()
	return nil
}

// present is how the present workqueue is shut down.
func (l *Lab) present() *shutDown {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.shutDown
}

func (l *Lab) elected() *election {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.election
}

func (e *election) newCandidate(config *rest.Config, identity string) (*candidate, error) {
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, ""
	config.Wrap(e.writes.of(identity))
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock,
		lockNamespace, lockName, resourcelock.ResourceLockConfig{Identity: identity}, config,
		renewDeadline)
	if err != nil {
		return nil, fmt.Errorf("make lock of candidate %s: %w", identity, err)
	}
	c := &candidate{identity: identity, lock: &faultyLock{Interface: lock, race: &e.race}}
	c.elector, err = leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            c.lock,
		Name:            lockName,
		LeaseDuration:   leaseDuration,
		RenewDeadline:   renewDeadline,
		RetryPeriod:     retryPeriod,
		ReleaseOnCancel: true, // see faultyLock
		Rejoin:          true,
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

// run runs the elector until ctx is done. After a kill or a release, the elector starts again when
// the other candidate has had the time to take the lease; before a race at once.
func (c *candidate) run(ctx context.Context, work func(context.Context)) {
	for ctx.Err() == nil {
		alive, kill := context.WithCancel(ctx)
		leave := sync.OnceFunc(c.begin(kill))
		// A leader that is stopped renews its lease until its work has returned.
		context.AfterFunc(alive, func() {
			if !c.isWorking() {
				leave()
			}
		})
		_ = c.elector.Lead(alive, func(term context.Context) {
			c.setWorks(true)
			work(term)
			c.setWorks(false)
			if alive.Err() != nil {
				leave()
			}
		})
		kill()
		if !c.end() {
			wait(ctx, 2*leaseDuration, nil)
		}
	}
}

// begin begins a run. The result ends the requests of its lock.
func (c *candidate) begin(kill func()) (leave func()) {
	left := c.lock.join()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kill, c.returns, c.in = kill, false, true
	return func() { close(left) }
}

// end ends a run, and reports whether the next one begins at once.
func (c *candidate) end() (returns bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kill, c.in = nil, false
	return c.returns
}

func (c *candidate) isIn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.in
}

func (c *candidate) setWorks(works bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.works = works
}

func (c *candidate) isWorking() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.works
}

// stop ends the run of the elector. The lease is released or not; the next run begins at once or
// not.
func (c *candidate) stop(releases, returns bool) {
	if releases {
		c.lock.release()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kill != nil {
		c.returns, c.in = returns, false
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

// apply ends the leader without or with a release of its lease, pauses it, cuts it off from the
// server, sets its clock an hour ahead, makes all candidates race for the lease, or ends the faults
// of all candidates.
func (e *election) apply(fault string) error {
	leader := e.leader()
	if leader == nil && fault != "resume" {
		return errNoLeader
	}
	switch fault {
	case "kill":
		leader.stop(false, false)
	case "release":
		leader.stop(true, false)
	case "race":
		e.race.arm(len(e.candidates))
		leader.stop(true, true)
	case "cut":
		leader.lock.cut()
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
		return fmt.Errorf(
			"leader fault %q: want kill, release, race, cut, pause, skew or resume", fault)
	}
	return nil
}

// view describes the election. The lab has two candidates in one process: identity is the first.
func (e *election) view(now time.Time) ElectionView {
	v := ElectionView{
		Candidates: []string{}, PausedNames: []string{}, CutNames: []string{},
		OutNames: []string{}, Writes: []LeaseWrite{},
		States: map[string]string{}, Observed: map[string]float64{},
	}
	if e == nil {
		return v
	}
	v.On, v.Identity, v.Fence = true, e.candidates[0].identity, e.fence.view()
	v.DurationMs = milliseconds(leaseDuration)
	v.DeadlineMs = milliseconds(retryPeriod + renewDeadline)
	e.writes.describe(&v)
	open := now // when a candidate that sees no change may take the lease
	for _, c := range e.candidates {
		v.Candidates = append(v.Candidates, c.identity)
		paused, cut := c.lock.state()
		if paused {
			v.Paused, v.PausedNames = true, append(v.PausedNames, c.identity)
		}
		if cut {
			v.CutNames = append(v.CutNames, c.identity)
		}
		s := c.elector.Status()
		if !c.isIn() {
			v.OutNames = append(v.OutNames, c.identity)
		}
		if v.Leader == "" {
			v.Leader = s.Leader
		}
		seen := c.lock.observedTime()
		v.States[c.identity] = c.state(s)
		if v.States[c.identity] == leadsState {
			v.Leader, v.Token = c.identity, s.Token.Transitions
			v.Leading = c == e.candidates[0]
			v.LeftMs = milliseconds(max(0, s.LastRenewal.Add(leaseDuration).Sub(now)))
			v.RenewedMs = milliseconds(now.Sub(c.lock.renewTime()))
		} else if c.looks() && !seen.IsZero() && s.Leader != c.identity {
			v.ObservedMs = milliseconds(now.Sub(seen))
			v.Observed[c.identity] = v.ObservedMs
			if s.Phase == leaderelection.Acquiring && v.Holder != "" {
				open = seen.Add(leaseDuration)
			}
		}
	}
	if v.LeftMs == 0 {
		v.OpenMs = milliseconds(max(0, open.Sub(now)))
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
	case !c.isIn():
		return stoppedState
	case s.Leader == c.identity:
		return holdsState
	}
	return waitsState
}

// looks reports whether the candidate looks at the lease: it runs, and is neither paused nor cut
// off.
func (c *candidate) looks() bool {
	paused, cut := c.lock.state()
	return c.isIn() && !paused && !cut
}
