// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
	clientgo "k8s.io/client-go/tools/leaderelection"
	clientgolock "k8s.io/client-go/tools/leaderelection/resourcelock"

	"example.com/informerstack/leaderelection"
	"example.com/informerstack/leaderelection/resourcelock"
)

// candidate is a program that works while it leads. When it has lost the lease, it exits. When it
// is stopped, it waits for its work. Another candidate is started in its place.
type candidate struct {
	*world
	setup
	name   string
	gate   *gate
	cancel context.CancelFunc
	busy   atomic.Int64  // how long the work needs to return
	dead   chan struct{} // closed when the program has exited
	ended  chan struct{} // closed when main has returned

	mu       sync.Mutex
	stopping time.Time // when stop was called
	started  time.Time // OnStartedLeading
	asked    time.Time // the work's context was done
	returned time.Time // the work has returned
	exited   time.Time
	calls    []call
	overlaps map[string]bool // candidates that led while this one worked
}

// call is one call of a callback.
type call struct {
	at   time.Time
	what string // started, stopped or leader
	name string // of the leader
}

func (w *world) newCandidate(s setup, index int) *candidate {
	w.starts++
	c := &candidate{
		world: w, setup: s, name: fmt.Sprintf("p%d.%d", index, w.starts),
		gate: newGate(w.server.Transport()), dead: make(chan struct{}),
		ended: make(chan struct{}), overlaps: map[string]bool{},
	}
	ctx, cancel := context.WithCancel(w.ctx)
	c.cancel = cancel
	go c.main(ctx, c.newElector())
	w.everyone = append(w.everyone, c)
	return c
}

// newElector returns the Run of an elector.
func (c *candidate) newElector() func(context.Context) {
	config := &rest.Config{Host: c.server.URL, Transport: named{c.name, c.gate}, QPS: -1}
	config.ContentType = "application/json"
	if c.impl == clientGo {
		return c.newReferenceElector(config)
	}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, "kube-system",
		"lock", resourcelock.ResourceLockConfig{Identity: c.name}, config, renewDeadline)
	if err != nil {
		panic(err)
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline,
		RetryPeriod: retryPeriod, ReleaseOnCancel: c.election == "release",
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: c.work, OnStoppedLeading: c.onStopped, OnNewLeader: c.onNewLeader,
		},
		Observe: func(t leaderelection.Transition) {
			c.note("%s elector: %s -> %s %v", c.name, t.From, t.To, errorText(t.Err))
		},
	})
	if err != nil {
		panic(err)
	}
	return elector.Run
}

func (c *candidate) newReferenceElector(config *rest.Config) func(context.Context) {
	lock, err := clientgolock.NewFromKubeconfig(clientgolock.LeasesResourceLock, "kube-system",
		"lock", clientgolock.ResourceLockConfig{Identity: c.name}, config, renewDeadline)
	if err != nil {
		panic(err)
	}
	elector, err := clientgo.NewLeaderElector(clientgo.LeaderElectionConfig{
		Lock: timedLock{lock, c}, LeaseDuration: leaseDuration, RenewDeadline: renewDeadline,
		RetryPeriod: retryPeriod, ReleaseOnCancel: c.election == "release",
		Callbacks: clientgo.LeaderCallbacks{
			OnStartedLeading: c.work, OnStoppedLeading: c.onStopped, OnNewLeader: c.onNewLeader,
		},
	})
	if err != nil {
		panic(err)
	}
	return elector.Run
}

// timedLock is a lock of client-go that covers renewals whose answer is so late that the elector
// leads for longer than its lease: it counts from the answer.
type timedLock struct {
	clientgolock.Interface
	c *candidate
}

func (l timedLock) Update(ctx context.Context, r clientgolock.LeaderElectionRecord) error {
	sent := time.Now()
	err := l.Interface.Update(ctx, r)
	if err == nil && time.Since(sent) > leaseDuration-retryPeriod-renewDeadline {
		l.c.cover("met late renewal")
	}
	return err
}

// nameHeader names the candidate of a request: client-go's electors have one User-Agent.
const nameHeader = "X-Candidate"

// named adds the name of a candidate to its requests.
type named struct {
	name string
	next http.RoundTripper
}

func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(nameHeader, n.name)
	return n.next.RoundTrip(r)
}

// main is the main function of the program.
func (c *candidate) main(ctx context.Context, elect func(context.Context)) {
	defer close(c.ended)
	elect(ctx)
	time.Sleep(time.Millisecond) // client-go may start the work when Run has returned
	if started, stopped, _ := c.counts(); started > stopped && !c.isOver() {
		c.violate(6, "%s: Run has returned without OnStoppedLeading", c.name)
	}
	for c.works() {
		time.Sleep(time.Second)
	}
	c.exit()
}

// work is OnStartedLeading. After a stop it ends with the term at the latest, which client-go's
// elector does not show.
func (c *candidate) work(ctx context.Context) {
	c.record(&c.started, call{what: "started"})
	select {
	case <-ctx.Done():
	case <-c.dead:
	}
	c.record(&c.asked, call{})
	var lost <-chan struct{}
	if c.impl != clientGo {
		lost = leaderelection.TermContext(ctx).Done()
	}
	select {
	case <-time.After(time.Duration(c.busy.Load())):
	case <-c.dead:
	case <-lost:
	}
	c.record(&c.returned, call{})
}

// onStopped exits, unless the program is stopping: then main waits for the work.
func (c *candidate) onStopped() {
	c.record(nil, call{what: "stopped"})
	c.mu.Lock()
	lost := c.stopping.IsZero()
	c.mu.Unlock()
	if lost {
		c.exit()
	}
}

func (c *candidate) onNewLeader(name string) {
	c.record(nil, call{what: "leader", name: name})
}

// record notes a call, and the time if at is not nil. A program that has exited does nothing.
func (c *candidate) record(at *time.Time, made call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.exited.IsZero() {
		return
	}
	if made.at = time.Now(); at != nil {
		*at = made.at
	}
	if made.what != "" {
		c.calls = append(c.calls, made)
		c.note("%s: %s %s", c.name, made.what, made.name)
		c.cover("election " + made.what)
	}
}

func (c *candidate) stop() {
	c.mu.Lock()
	if c.stopping.IsZero() {
		c.stopping = time.Now()
	}
	c.mu.Unlock()
	c.cancel()
}

// exit ends the program at once.
func (c *candidate) exit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.exited.IsZero() {
		return
	}
	c.note("%s: exits", c.name)
	c.exited = time.Now()
	c.gate.set(dead)
	close(c.dead)
	c.cancel()
}

// span is a time from its begin to its end. One that has not begun is empty, one that has not ended
// lasts until now.
func span(begin time.Time, ends ...time.Time) (from, to time.Time) {
	to = time.Now()
	for _, end := range ends {
		if !end.IsZero() && end.Before(to) {
			to = end
		}
	}
	if begin.IsZero() {
		begin = to
	}
	return begin, to
}

// acting is when the candidate acts as a leader.
func (c *candidate) acting() (from, to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return span(c.started, c.asked, c.exited)
}

// working is when its work runs.
func (c *candidate) working() (from, to time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return span(c.started, c.returned, c.exited)
}

func (c *candidate) acts() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.started.IsZero() && c.asked.IsZero() && c.exited.IsZero()
}

func (c *candidate) works() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.started.IsZero() && c.returned.IsZero() && c.exited.IsZero()
}

func (c *candidate) isOver() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.exited.IsZero()
}

// since returns the calls since a time. Those of one instant, which have no order, are sorted.
func (c *candidate) since(at time.Time) []call {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := slices.DeleteFunc(slices.Clone(c.calls), func(made call) bool {
		return made.at.Before(at)
	})
	slices.SortStableFunc(calls, func(a, b call) int {
		if order := a.at.Compare(b.at); order != 0 {
			return order
		}
		return cmp.Compare(a.what, b.what)
	})
	return calls
}
