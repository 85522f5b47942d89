// SPDX-License-Identifier: Apache-2.0

// Package shard divides the objects of a controller among its replicas: each object belongs to one
// replica at a time, and only that one reconciles it.
//
//	Leases -> [membership -> assignment -> ownership] -> caches: list and watch that part
//	                                                  -> guard: reconcile only that part
//
// To use it, make a [Shards] with [New], wire each informer with [Shards.Options] and the reconcile
// function with [Reconcile], and call Run beside those of the informers and the controller.
//
// Objects are divided into virtual shards by the hash of a value of theirs, see [By]. Each replica
// is a member of the group as long as it renews a Lease of its own. Each shard has a Lease too,
// which names its owner, and which is written only when the shard moves. All members compute from
// these Leases which member is to own which shard. An owner that is to give a shard up drains it:
// no reconcile begins, the running ones end, then its Lease is cleared, and the new owner takes it.
// A shard of a member that is over can be taken as it is. No other state is kept on the server.
//
// Read hash.go (objects and shards), assign.go (which member is to own which shard), lease.go and
// member.go (the Leases, and when a member is over), slot.go and guard.go (the right to act),
// tenure.go (the state machine), transfer.go (the writes), then informercache.go, listwatch.go,
// watch.go and relist.go (the caches). Then go test -v ./shard.
//
// Goroutines: Run has one for the informer of the Leases, one for the elector of the membership,
// one for the manager, and one for each request of it. All have ended when Run returns. Each watch
// of an informer has one, and each list beside it; they end with the watch. Locking: each slot's
// mu, and the mu of the Shards, which guards what Status reports; no callback and no request is
// made under them.
package shard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"example.com/informerstack/informer"
	"example.com/informerstack/internal/helpers/done"
	"example.com/informerstack/leaderelection"
)

// ErrRunning is what Run returns while it runs already.
var ErrRunning = errors.New("shards are running already")

// Shards is this process's part of a group of replicas.
//
//	I1  at no time do two replicas reconcile keys of one shard while both have the right to, by
//	    their own clocks
//	I2  every shard has an owner in bounded time: LeaseDuration and a few RetryPeriods after its
//	    owner has died, DrainTimeout and a few RetryPeriods after a change of the members. An
//	    owner that does not make a shard active by syncUntil gives it to one that can, if any
//	I3  a key that changed while its shard moved is reconciled afterwards, by the new owner
//	I4  a replica reconciles only keys of shards that it owns, with the newest token of the shard
//	I5  see A1 to A4: loads are even, and only shards that must move do
//
// Run is for one goroutine at a time. The other methods are safe for concurrent use.
type Shards struct {
	config Config
	leases leases
	slots  []*slot
	caches caches

	running atomic.Bool
	wake    chan struct{}                   // full when the manager has something to look at
	ownsAll atomic.Bool                     // this process owns every shard; some may be syncing
	passes  atomic.Uint64                   // of the manager
	plans   atomic.Uint64                   // how often it has computed an assignment
	unknown atomic.Uint64                   // keys that were dropped: their shard was not known
	lagging atomic.Pointer[time.Time]       // since when the caches have not done what they should
	ready   atomic.Pointer[context.Context] // of the term in which it was ready

	firstPhase pacePhase  // in which a term begins: waiting. Tests may begin with full
	observe    func(move) // called with each move, in order; nil but in tests

	// ended are the earlier identities of this process: no work of theirs is left. It belongs to
	// the goroutine of Run or of the manager, which are never busy at the same time.
	ended map[string]bool

	mu      sync.Mutex
	lister  informer.SharedIndexInformer // of the Leases; Run sets it first
	peers   map[string]*peer             // by the name of the Lease
	status  Status
	plan    plan   // the newest
	shown   string // the newest version that lister has had: M3
	written string // the version of the last write of a membership: M3
}

// New returns a part that does nothing before Run. It fails if config is invalid. Replicas with
// another Count need a group with another Name.
func New(config Config) (*Shards, error) {
	if err := cmp.Or(config.check(), config.setDefaults()); err != nil {
		return nil, fmt.Errorf("make shards %q: %w", config.Name, err)
	}
	s := &Shards{
		config: config, leases: newLeases(&config), caches: newCaches(config.Count),
		wake: make(chan struct{}, 1), firstPhase: paceWaiting, ended: map[string]bool{},
		peers: map[string]*peer{},
		slots: make([]*slot, config.Count),
	}
	for i := range s.slots {
		s.slots[i] = &slot{slotStatus: slotStatus{state: Elsewhere}}
	}
	probe := &membership{leases: s.leases, shards: s, identity: config.newIdentity()}
	if _, err := probe.elector(); err != nil { // it checks the durations
		return nil, fmt.Errorf("make shards %q: %w", config.Name, err)
	}
	return s, nil
}

// Run joins the group, works for it, and leaves it when ctx is done. It returns when all shards of
// this process are released: after the running reconciles have returned. The shards of a process
// that does not wait for that are free after LeaseDuration.
//
// It joins when the server has answered a list of each informer with Options: until then it could
// not use a shard, see Check. If the membership is lost, Run joins again. It returns an error only
// if the group has another number of shards, if present members share the same kind of objects by
// another value, or if Run is called while it runs.
func (s *Shards) Run(ctx context.Context) error {
	if !s.running.CompareAndSwap(false, true) {
		return fmt.Errorf("run shards %q: %w", s.config.Name, ErrRunning)
	}
	defer s.running.Store(false)
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("group", s.config.Name))
	for ctx.Err() == nil {
		err := s.work(ctx)
		if err != nil && !errors.Is(err, errRestored) {
			return fmt.Errorf("run shards %q: %w", s.config.Name, err)
		}
	}
	return nil
}

// errRestored ends the work on what a server said before it was restored: M3.
var errRestored = errors.New("the server was restored from a copy")

// work joins the group again and again, with one informer of the Leases.
func (s *Shards) work(ctx context.Context) error {
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	lister := s.newLister()
	s.mu.Lock()
	s.lister, s.shown, s.written = lister, "", ""
	s.mu.Unlock()
	running.Go(func() { lister.Run(watching) })
	if informer.WaitForSync(ctx, lister) != nil {
		return nil // stopped before it has joined
	}
	for ctx.Err() == nil {
		err := s.join(ctx)
		var fatal *configError
		if errors.As(err, &fatal) || errors.Is(err, errRestored) {
			return err
		}
		if err != nil {
			s.noteError(ctx, err)
			done.Sleep(ctx, wait.Jitter(s.config.RetryPeriod, 0.5))
		}
	}
	return nil
}

// peerLocked returns the peer with that Lease.
func (s *Shards) peerLocked(name, identity string) *peer {
	p := s.peers[name]
	if p == nil {
		p = &peer{
			name: name, duration: s.config.LeaseDuration, least: s.config.LeaseDuration,
		}
		s.peers[name] = p
	}
	if p.identity == "" {
		p.identity = identity
	}
	return p
}

// wakeUp makes the manager look at everything. It does not block.
func (s *Shards) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// obeyed returns the version up to which this process has seen the shards' Leases, if it acts for
// no shard that has another owner there: M2. Otherwise it returns "".
//
// The order matters: the version is read before the states. A shard that is acquired later is
// acquired by a write that is newer than the version.
func (s *Shards) obeyed(identity string) string {
	version, back := s.synced()
	if back {
		return ""
	}
	for shard, slot := range s.slots {
		now := slot.look()
		switch {
		case now.state == Acquiring, now.running > 0 && !now.state.owned():
			return ""
		case !now.state.owned():
		case !isGrant(s.stored(Shard(shard)), identity, now.right):
			return ""
		}
	}
	return version
}

// join is one term of membership: it joins the group, works until ctx is done or the term is over,
// and leaves.
func (s *Shards) join(ctx context.Context) error {
	s.waitForCaches(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err := cmp.Or(s.checkBys(), s.checkCount(ctx)); err != nil {
		return err
	}
	joining, burn := context.WithCancelCause(ctx)
	defer burn(nil)
	member := &membership{
		leases: s.leases, shards: s, identity: s.config.newIdentity(), burn: burn,
	}
	first := (&pace{phase: s.firstPhase}).limit(load{})
	member.limit.Store(&first)
	elector, err := member.elector()
	if err != nil {
		return err
	}
	var worked error
	err = elector.Lead(joining, func(led context.Context) {
		member.begun.Store(true)
		s.mu.Lock()
		s.status.Terms++
		s.mu.Unlock()
		if worked = newTenure(s, member, led).serve(); worked != nil {
			burn(worked) // leave even if ctx is not done
		}
	})
	s.ended[member.identity] = true
	s.lagging.Store(nil)
	s.forget(ctx, member)
	if member.restored.Load() {
		s.noteError(ctx, errRestored)
		done.Sleep(ctx, s.config.LeaseDuration)
		return errRestored
	}
	switch {
	case worked != nil:
		return worked
	case err != nil && !errors.Is(err, leaderelection.ErrLost):
		return err
	case errors.Is(err, leaderelection.ErrLost):
		klog.FromContext(ctx).Info("Lost the membership, joining again", "reason", err)
		return nil
	case ctx.Err() == nil && joining.Err() != nil:
		return fmt.Errorf("join as %s: %w", member.identity, context.Cause(joining))
	}
	return nil
}

// waitForCaches waits until the server has answered a list of each cache: a member that cannot fill
// its caches would own shards, and not serve them. An informer that was made but does not run may
// never do so: it is waited for as long as a shard may be syncing, and not again.
func (s *Shards) waitForCaches(ctx context.Context) {
	began := time.Now()
	s.lagging.Store(&began)
	defer s.lagging.Store(nil)
	for ctx.Err() == nil {
		caches := s.caches.status()
		patient := time.Since(began) <= syncWithin*s.config.LeaseDuration
		if caches.silent == 0 && (caches.made == 0 || !patient) {
			s.caches.expectNone()
			return
		}
		s.mu.Lock()
		s.status.LastError = fmt.Errorf("join: no answer yet to a list of %d informers; %d others "+
			"do not run yet", caches.silent, caches.made)
		s.status.LastErrorTime = time.Now()
		s.mu.Unlock()
		timer := time.NewTimer(s.config.RetryPeriod)
		select {
		case <-s.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// checkBys fails with a configError if a present member shares objects of the same kind by another
// value.
func (s *Shards) checkBys() error {
	v := s.read()
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, lease := range v.members {
		p := s.peerLocked(name, "")
		p.list(lease, time.Now())
		if err := s.checkBy(p, time.Now()); err != nil {
			return err
		}
	}
	return nil
}

// checkBy is checkBys for one member.
func (s *Shards) checkBy(p *peer, now time.Time) error {
	if !p.alive(now) || s.ended[p.identity] {
		return nil
	}
	mine, others := s.caches.bys(), p.lease.Annotations[byAnnotation]
	if mine == others {
		return nil
	}
	own, other := bysOf(mine), bysOf(others)
	for kind, bys := range other {
		if mine := own[kind]; mine != nil && !slices.ContainsFunc(mine, func(by string) bool {
			return slices.Contains(bys, by)
		}) {
			return &configError{fmt.Sprintf("this process shares objects of %s by %s, but member "+
				"%s of the group does so by %s: use the same shard.By, or another Name for the "+
				"group, and end the old replicas before the new ones begin", kind,
				strings.Join(mine, " and "), p.identity, strings.Join(bys, " and "))}
		}
	}
	return nil
}

// bysOf returns the values by which each kind is shared, as a byAnnotation has them.
func bysOf(annotation string) map[string][]string {
	bys := map[string][]string{}
	for use := range strings.SplitSeq(annotation, ",") {
		if kind, by, ok := strings.Cut(use, "="); ok {
			bys[kind] = append(bys[kind], by)
		}
	}
	return bys
}

// checkCount fails with a configError if the group has another number of shards. The first member
// creates the Lease of shard 0, which settles the number.
func (s *Shards) checkCount(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.config.RenewDeadline)
	defer cancel()
	name := s.leases.shardName(0)
	lease, err := s.leases.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		lease, err = s.leases.Create(ctx, s.leases.free(0), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) { // by a member that starts at the same time
			lease, err = s.leases.Get(ctx, name, metav1.GetOptions{})
		}
	}
	if err != nil {
		return fmt.Errorf("read or create Lease %s: %w", name, err)
	}
	if lease.Labels[GroupLabel] != s.config.Name {
		return s.leases.foreign(name)
	}
	return s.leases.checkCount(lease)
}

// forget deletes the Lease of a membership that is over. If that fails, another member does it
// later.
func (s *Shards) forget(ctx context.Context, member *membership) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.RetryPeriod)
	defer cancel()
	lease, err := s.leases.Get(ctx, s.leases.memberName(member.identity), metav1.GetOptions{})
	if err == nil && holderOf(lease) == "" {
		err = s.leases.delete(ctx, lease)
	}
	if err != nil && !apierrors.IsNotFound(err) {
		klog.FromContext(ctx).V(2).Info("Could not delete the Lease of a membership that is over",
			"identity", member.identity, "err", err)
	}
}
