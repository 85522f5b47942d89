// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"cmp"
	"context"
	"errors"
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
)

// candidate is a program that works while it leads. When it has lost the lease, it exits, unless it
// has a trait to continue. When it is stopped, it waits for its work. Then another candidate is
// started in its place.
type candidate struct {
	*world
	setup
	index    int
	name     string // also of its requests
	identity string
	gate     *gate
	cancel   context.CancelFunc
	busy     atomic.Int64  // how long the work needs to return
	dead     chan struct{} // closed when the program has exited
	ended    chan struct{} // closed when main has returned
	requests int           // for the lease, when Run returned
	left     time.Time     // when it did
	judged   bool          // checkEnded has seen the end
	migrates bool          // the next program in its place has the next lock

	mu        sync.Mutex
	disturbed bool // something failed after stop, or in a release
	releasing bool
	trap      trap
	trapped   string    // part of the path of the write that is met
	stopping  time.Time // when stop was called
	exited    time.Time
	terms     []*term
	calls     []call
}

// term is one call of OnStartedLeading.
type term struct {
	c        *candidate
	ctx      context.Context
	started  time.Time
	asked    time.Time // its context was done
	over     time.Time // TermContext was done; zero with client-go
	lost     bool      // that was a loss
	returned time.Time
	judged   bool
	overlaps map[*term]bool // terms of candidates that led while this one worked
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
		world: w, setup: s, index: index, name: fmt.Sprintf("p%d.%d", index, w.starts),
		dead: make(chan struct{}), ended: make(chan struct{}),
	}
	if c.identity = c.name; s.has(fixed) {
		c.identity = fmt.Sprint("p", index)
	}
	c.gate = newGate(w.server.Transport())
	if w.impl == ours {
		c.gate.next = &tap{c, c.gate.next}
	}
	ctx, cancel := context.WithCancel(w.ctx)
	c.cancel = cancel
	elect := c.newElector()
	go c.main(ctx, elect)
	w.everyone = append(w.everyone, c)
	return c
}

func (c *candidate) config() *rest.Config { return c.world.config(named{c, c.gate}, "") }

// newElector returns the Run of an elector, and of a LeaseCandidate if its election is coordinated.
func (c *candidate) newElector() func(context.Context) {
	if c.impl == clientGo {
		return c.newReferenceElector(c.config())
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: newLock(c.config(), c.lock, c.identity), LeaseDuration: leaseDuration,
		RenewDeadline: renewDeadline, RetryPeriod: retryPeriod,
		ReleaseOnCancel: c.election == "release", Coordinated: c.lock == coordinated,
		Rejoin: c.has(rejoins), AbandonWork: c.has(abandons),
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: c.work, OnStoppedLeading: c.onStopped, OnNewLeader: c.onNewLeader,
		},
		Observe: func(t leaderelection.Transition) {
			c.note("%s elector: %s -> %s %v", c.name, t.From, t.To, errorText(t.Err))
			c.cover(fmt.Sprintf("elector %s -> %s", t.From, t.To))
			c.mu.Lock()
			c.releasing = t.To == leaderelection.Releasing
			c.mu.Unlock()
		},
	})
	if err != nil {
		panic(err)
	}
	if c.lock != coordinated {
		return elector.Run
	}
	return func(ctx context.Context) {
		registered, unregister := context.WithCancel(ctx)
		var registration sync.WaitGroup
		registration.Go(func() { c.newLeaseCandidate().Run(registered) })
		elector.Run(ctx)
		unregister()
		registration.Wait()
	}
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

// timedLock is a lock of client-go. It covers renewals with a late answer: the elector counts from
// the answer, and so leads for longer than its lease.
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
	c    *candidate
	next *gate
}

func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	mode, _ := n.next.state()
	r = r.Clone(r.Context())
	r.Header.Set(nameHeader, n.c.name)
	answer, err := n.next.RoundTrip(r)
	failed := mode != open || err != nil || answer.StatusCode > http.StatusNotFound ||
		answer.ContentLength <= 0 // cut
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	n.c.disturbed = n.c.disturbed || failed && (n.c.releasing || !n.c.stopping.IsZero())
	return answer, err
}

// main is the main function of the program.
func (c *candidate) main(ctx context.Context, elect func(context.Context)) {
	defer close(c.ended)
	for {
		elect(ctx)
		time.Sleep(time.Millisecond) // client-go may start the work when Run has returned
		if started, stopped, _ := c.counts(); started > stopped && !c.isOver() {
			c.violate(6, "%s: Run has returned without OnStoppedLeading", c.name)
		}
		if !c.has(again) || ctx.Err() != nil {
			break
		}
		if c.works() {
			c.cover("Run again while the work runs")
		}
		time.Sleep(time.Second)
	}
	for c.works() {
		time.Sleep(time.Second)
	}
	c.mu.Lock()
	c.disturbed = c.disturbed || !c.exited.IsZero()
	c.mu.Unlock()
	c.requests, c.left = c.gate.electionRequests(), time.Now()
	c.exit()
}

// work is OnStartedLeading. After a stop it ends with the term at the latest, which client-go's
// elector does not show; stubborn work takes its time.
func (c *candidate) work(ctx context.Context) {
	t := c.begin(ctx)
	select {
	case <-ctx.Done():
	case <-c.dead:
	}
	c.record(&t.asked, call{})
	var lost <-chan struct{}
	if c.impl != clientGo && !c.has(stubborn) {
		lost = leaderelection.TermContext(ctx).Done()
	}
	select {
	case <-time.After(time.Duration(c.busy.Load())):
	case <-c.dead:
	case <-lost:
	}
	c.record(&t.returned, call{})
}

// begin notes a term. A program that has exited has no term.
func (c *candidate) begin(ctx context.Context) *term {
	t := &term{c: c, ctx: ctx, overlaps: map[*term]bool{}}
	if c.works() && !c.has(abandons) {
		c.violate(6, "%s begins to work while its last work runs", c.name)
	}
	if c.record(&t.started, call{what: "started"}); t.started.IsZero() {
		return t
	}
	c.mu.Lock()
	c.terms = append(c.terms, t)
	c.mu.Unlock()
	if c.impl == clientGo {
		return t
	}
	lasting := leaderelection.TermContext(ctx)
	context.AfterFunc(lasting, func() {
		c.record(&t.over, call{})
		c.mu.Lock()
		defer c.mu.Unlock()
		t.lost = errors.Is(context.Cause(lasting), leaderelection.ErrLost)
	})
	return t
}

// onStopped exits, unless the program is stopping: then main waits for the work.
func (c *candidate) onStopped() {
	c.record(nil, call{what: "stopped"})
	c.mu.Lock()
	lost := c.stopping.IsZero()
	c.mu.Unlock()
	if lost && !c.continues() {
		c.exit()
	}
}

// continues reports whether the program is a candidate again when it has lost the lease.
func (c *candidate) continues() bool { return c.has(rejoins) || c.has(again) }

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

// acting is when the candidate acts as a leader in a term.
func (t *term) acting() (from, to time.Time) {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	return span(t.started, t.asked, t.c.exited)
}

// working is when its work runs. The elector does not answer for work that was abandoned, or does
// not stop when the term is over.
func (t *term) working() (from, to time.Time) {
	t.c.mu.Lock()
	defer t.c.mu.Unlock()
	if t.c.has(stubborn) || t.c.has(abandons) {
		return span(t.started, t.over, t.returned, t.c.exited)
	}
	return span(t.started, t.returned, t.c.exited)
}

// last returns the last term, or one that never began.
func (c *candidate) last() *term {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.terms); n > 0 {
		return c.terms[n-1]
	}
	return &term{c: c}
}

func (c *candidate) acts() bool {
	t := c.last()
	c.mu.Lock()
	defer c.mu.Unlock()
	return !t.started.IsZero() && t.asked.IsZero() && c.exited.IsZero()
}

func (c *candidate) works() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.exited.IsZero() && slices.ContainsFunc(c.terms, func(t *term) bool {
		return t.returned.IsZero()
	})
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
