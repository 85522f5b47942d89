// SPDX-License-Identifier: Apache-2.0

package namespaces

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"example.com/informerstack/reflector"
)

// cluster decides when one watch of the whole cluster, a feed, takes the place of many watches: see
// Options.ClusterAbove.
//
// A member keeps its reflector, with its version, lists, errors and backoff. Only its watch becomes
// a branch of the feed, from the version that it has. So a switch is the end of one watch and the
// opening of the next, and the whole cluster is never listed.
//
//	L1  while the feed works, at most ClusterAbove members have watched alone for longer than two
//	    lookPeriods
//	L2  a feed without a watch ends after maxDown and a lookPeriod, a silent one after maxSilence
//	    and a lookPeriod
type cluster struct {
	set  *Set
	feed atomic.Pointer[feed] // nil while each namespace has a watch of its own

	mu     sync.Mutex // guards the fields below
	status ClusterStatus
	wait   time.Duration // before the next feed, if this one fails
}

// ClusterStatus is the state of the watch of the whole cluster: see Options.ClusterAbove.
type ClusterStatus struct {
	// Namespaces are how many have their changes from this watch; 0 while it is not open.
	Namespaces int
	// LastError is why the last such watch ended or was not granted, and RetryAfter when the next
	// one may be requested. It is nil before the first one, and if few namespaces were left.
	LastError     error
	LastErrorTime time.Time
	RetryAfter    time.Time
}

const (
	lookPeriod = 5 * time.Second // the longest time between two decisions
	maxDown    = 30 * time.Second
	maxSilence = 150 * time.Second // a server sends a bookmark each minute

	minClusterWait, maxClusterWait = time.Minute, time.Hour
	stableFeed                     = 10 * time.Minute // after that a failure is not like the last
)

var (
	errFew        = errors.New("few namespaces are left")
	errSilent     = errors.New("no event and no bookmark")
	errUnanswered = errors.New("no answer")
)

// ClusterStatus returns the state of the watch of the whole cluster. It does not wait.
func (s *Set) ClusterStatus() ClusterStatus {
	if s.cluster == nil {
		return ClusterStatus{}
	}
	s.cluster.mu.Lock()
	status := s.cluster.status
	s.cluster.mu.Unlock()
	if f := s.cluster.feed.Load(); f != nil {
		status.Namespaces = f.granted()
	}
	return status
}

// run decides from time to time, until ctx is done.
func (c *cluster) run(ctx context.Context) {
	for c.look(ctx) {
		c.mu.Lock()
		retryAfter := c.status.RetryAfter
		c.mu.Unlock()
		if c.alone() > c.set.options.ClusterAbove && !time.Now().Before(retryAfter) {
			c.follow(ctx)
		}
	}
}

// look waits for the time of the next decision. It returns false if ctx is done.
func (c *cluster) look(ctx context.Context) bool {
	timer := time.NewTimer(lookPeriod - rand.N(lookPeriod/4))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// alone counts the members with a watch of their own that could be a branch.
func (c *cluster) alone() (count int) {
	for _, m := range *c.set.members.Load() {
		if _, own := m.watchesAlone(); own != nil {
			count++
		}
	}
	return count
}

// follow runs a feed until it ends. Then each member watches alone again.
func (c *cluster) follow(ctx context.Context) {
	f, began := newFeed(c), time.Now()
	c.feed.Store(f)
	err := c.keep(ctx, f)
	for _, m := range *c.set.members.Load() {
		c.prove(m) // for the last time
	}
	c.feed.Store(nil)
	f.end()
	if ctx.Err() != nil {
		return
	}
	c.log().Info("Watching each namespace alone", "reason", err)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == errFew {
		c.status = ClusterStatus{}
		return
	}
	now := time.Now()
	if now.Sub(began) >= stableFeed {
		c.wait = 0
	}
	c.wait = min(max(2*c.wait, minClusterWait), maxClusterWait)
	c.status = ClusterStatus{
		LastError: fmt.Errorf("watch of the whole cluster: %w", err), LastErrorTime: now,
		RetryAfter: now.Add(c.wait + rand.N(c.wait/4)),
	}
}

// keep runs the reflector of a feed, and returns why the feed ends.
func (c *cluster) keep(ctx context.Context, f *feed) (err error) {
	ctx, f.cancel = context.WithCancel(ctx)
	defer f.cancel()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f.reflector.Run(ctx)
	}()
	for err == nil && c.look(ctx) {
		if c.alone() > c.set.options.ClusterAbove {
			f.reopen()
		}
		err = f.check()
	}
	f.cancel()
	<-ended
	f.mu.Lock()
	defer f.mu.Unlock()
	return cmp.Or(f.fatal, err)
}

// check returns why the feed should end, or nil.
func (f *feed) check() error {
	f.mu.Lock()
	down := f.down
	f.mu.Unlock()
	status, now := f.reflector.Status(), time.Now()
	switch {
	case !down.IsZero() && now.Sub(down) >= maxDown:
		return fmt.Errorf("not open for %v: %w", maxDown, cmp.Or(failure(status), errUnanswered))
	case !down.IsZero():
		return nil
	case now.Sub(status.LastContact) >= maxSilence:
		return fmt.Errorf("%w for %v", errSilent, maxSilence)
	case 2*f.granted() <= f.cluster.set.options.ClusterAbove:
		return errFew
	}
	return nil
}

// failure returns the present failure of a reflector, or nil.
func failure(status reflector.Status) error {
	if status.ConsecutiveFailures == 0 {
		return nil
	}
	return status.LastError
}

func (c *cluster) log() klog.Logger {
	logger := klog.FromContext(c.set.run.ctx)
	if own := c.set.run.options.Logger; own != nil {
		logger = *own
	}
	return logger.WithValues("informer", c.set.run.options.Name)
}
