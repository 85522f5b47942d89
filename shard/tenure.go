// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/klog/v2"

	"example.com/informerstack/internal/helpers/done"
	"example.com/informerstack/leaderelection"
)

// maxRequests bounds the requests that a member makes at a time, so that the renewals of its
// membership do not wait behind them in the client's rate limiter.
const maxRequests = 4

// tenure is the work of one term of membership: the manager of this process's shards.
//
//	T1  an acquisition counts when the server's answer to it, or to a read after it, names this
//	    identity: a write without an answer is in doubt, and its state does not change
//	T2  a shard that was to be released is not acted for again before it is acquired again
//	T3  while a shard is acquired, the member does not say that it has obeyed a newer version (M2)
//
// All methods are for one goroutine. Requests have goroutines of their own, and hand their results
// to it.
type tenure struct {
	shards    *Shards
	member    *membership
	me        string          // the identity of the member
	led, term context.Context // led is done when the member is to leave, term when its term is over

	claims    []claim
	answers   map[Shard]*coordinationv1.Lease // that are newer than the view
	plan      plan
	pace      pace
	isKnown   bool        // this member's Lease, and that it has no limit
	requests  int         // under way
	results   chan func() // of requests
	leaving   bool
	failure   error     // a configError that makes it leave
	next      time.Time // of the next pass, if nothing happens before
	obeyedAll string    // the version up to which every other member has obeyed the Leases
	alone     bool      // there is no other member, nor one that may not be over
}

// claim is what the manager remembers about one shard.
type claim struct {
	busy    bool      // a request is under way
	sent    time.Time // acquireTime of the last acquisition in this term
	doubt   bool      // the last write may have been done
	retry   time.Time // not before
	reads   int       // after writes in doubt, since the last acquisition
	missing string    // the version that first showed no Lease of the shard
	newest  string    // the newest version of the Lease that was seen
}

func newTenure(s *Shards, member *membership, led context.Context) *tenure {
	return &tenure{
		shards: s, member: member, me: member.identity, led: led,
		term: leaderelection.TermContext(led), claims: make([]claim, len(s.slots)),
		answers: map[Shard]*coordinationv1.Lease{}, results: make(chan func(), maxRequests),
		pace: pace{phase: member.shards.firstPhase(), began: time.Now()},
	}
}

// serve works until led is done and all shards are released, or the term is over, and no reconcile
// and no request is left in either case. It looks at everything whenever something has happened,
// but it does not look at renewals.
func (t *tenure) serve() error {
	timer := time.NewTimer(t.shards.config.RetryPeriod)
	defer timer.Stop()
	stopping, over := t.led.Done(), t.term.Done()
	for {
		began := time.Now()
		if !t.pass(began) {
			return t.failure
		}
		// In a large group, many changes arrive at once: look at them together.
		done.Sleep(t.term, min(10*time.Since(began), t.shards.config.RetryPeriod/4))
		timer.Reset(time.Until(t.next))
		select {
		case <-t.shards.wake:
		case <-timer.C:
		case <-stopping:
			stopping = nil
		case <-over:
			over = nil
		case result := <-t.results:
			t.requests--
			result()
		}
		for more := true; more; {
			select {
			case result := <-t.results:
				t.requests--
				result()
			default:
				more = false
			}
		}
	}
}

// pass looks at everything once. It returns false when nothing is left to do.
func (t *tenure) pass(now time.Time) (more bool) {
	t.shards.passes.Add(1)
	t.next = now.Add(t.shards.config.LeaseDuration)
	v := t.look()
	if t.over() {
		t.drop()
		t.publish()
		return t.requests > 0 || t.working()
	}
	t.meet(v, now)
	if t.led.Err() != nil || t.failure != nil {
		t.leaving = true
		t.member.leave()
	}
	t.arrange(v, now)
	for s, lease := range v.shards {
		t.step(Shard(s), lease, v.version, now)
	}
	t.sync()
	t.adjust(now)
	t.sweep(now)
	t.publish()
	return !t.leaving || t.requests > 0 || t.working() || t.holding()
}

// at asks for a pass at that time at the latest.
func (t *tenure) at(when time.Time) {
	if when.Before(t.next) {
		t.next = when
	}
}

// over reports whether this member may not act any more: M3.
func (t *tenure) over() bool { return t.term.Err() != nil || t.member.wentBack() }

// look returns the Leases as this member knows them: as the informer has seen them, or as newer
// answers say. A Lease that is older than it was seen before is of another history.
func (t *tenure) look() view {
	v := t.shards.read()
	for s, lease := range t.answers {
		if newer(lease.ResourceVersion, v.version) {
			v.shards[s] = lease
			t.at(time.Now().Add(t.shards.config.RetryPeriod))
			continue
		}
		delete(t.answers, s)
		if c := &t.claims[s]; newer(lease.ResourceVersion, c.newest) {
			c.newest = lease.ResourceVersion
		}
	}
	for s, lease := range v.shards {
		switch c := &t.claims[s]; {
		case lease == nil:
			c.missing = cmp.Or(c.missing, v.version)
		default:
			v.back = v.back || newer(c.newest, lease.ResourceVersion)
			c.missing, c.newest = "", lease.ResourceVersion
			t.failure = cmp.Or(t.failure, t.shards.leases.checkCount(lease))
		}
	}
	if v.back {
		t.member.goBack()
	}
	return v
}

// step takes a shard one step further, if it can. All decisions about a shard are made here, except
// that sync decides whether the caches hold it.
//
//	Elsewhere ──▶ Acquiring ──▶ Syncing ◀──▶ Active
//	    ▲             │            │  ▲        │
//	    ├─────────────┘            ▼  │        │
//	    └────── Releasing ◀───── Draining ◀────┘
//
// A shard that is lost, and every shard when the term is over, is Elsewhere at once.
func (t *tenure) step(s Shard, lease *coordinationv1.Lease, version string, now time.Time) {
	state, running, right := t.shards.slots[s].look()
	c := &t.claims[s]
	mine := holderOf(lease) == t.me
	if state.owned() && !isGrant(lease, t.me, right) {
		t.move(s, Elsewhere, nil, fmt.Errorf("%w: its Lease names %q", ErrLost, holderOf(lease)))
		t.shards.wakeUp()
		return
	}
	wanted := t.plan.targets[s] == t.me
	switch state {
	case Elsewhere:
		// A person may have written this member into the Lease, or a write that was given up has
		// been done: then the others wait until this member has released the shard.
		wanted = wanted || mine
		if running == 0 && wanted && t.free(s, lease, now) && t.may(c, now) {
			t.move(s, Acquiring, nil, nil)
			t.acquire(s, lease)
		}

	case Acquiring:
		if t.may(c, now) {
			t.acquire(s, lease)
		}

	case Syncing, Active:
		if !wanted {
			right.drains = now.Add(t.shards.config.DrainTimeout)
			t.move(s, Draining, nil, nil)
			t.shards.wakeUp()
		}

	case Draining:
		switch {
		case wanted && right.valid():
			t.move(s, Syncing, nil, nil)
		case running == 0 && t.may(c, now):
			t.move(s, Releasing, nil, nil)
			t.release(s, lease)
		case running > 0 && now.Before(right.drains):
			t.at(right.drains)
		case running > 0:
			right.end(ErrMoved)
		}

	case Releasing:
		if t.may(c, now) {
			t.release(s, lease)
		}
	}
}

// isGrant reports whether the Lease of a shard gives a member that right: another token, or another
// UID, is that of a Lease that was deleted or taken in between.
func isGrant(lease *coordinationv1.Lease, identity string, r *right) bool {
	return holderOf(lease) == identity && tokenOf(lease) == r.token
}

// took reports whether the Lease of a shard is as this member has written it in this term.
func (t *tenure) took(lease *coordinationv1.Lease) bool {
	return holderOf(lease) == t.me && !isEdited(lease)
}

// may reports whether a request for a shard may be made now.
func (t *tenure) may(c *claim, now time.Time) bool {
	if now.Before(c.retry) {
		t.at(c.retry)
		return false
	}
	return !c.busy && t.requests < maxRequests
}

// sync assigns to the caches what they are to hold. A shard is active while all of them hold it.
func (t *tenure) sync() {
	owned := newShardSet(len(t.shards.slots))
	for s, slot := range t.shards.slots {
		if state, _, _ := slot.look(); state.owned() {
			owned.add(Shard(s))
		}
	}
	t.shards.caches.assign(owned)
	stored := t.shards.caches.stored()
	for s := range owned.each() {
		switch state, _, _ := t.shards.slots[s].look(); {
		case state == Syncing && stored.has(s):
			t.move(s, Active, nil, nil)
		case state == Active && !stored.has(s):
			t.move(s, Syncing, nil, nil)
		}
	}
}

// drop gives up everything, because the term is over. Nothing is released: other members take the
// shards.
func (t *tenure) drop() {
	cause := context.Cause(t.term)
	if t.member.wentBack() {
		cause = cmp.Or(cause, errRestored)
		t.failure = errRestored // it is no member any more
	}
	for s, slot := range t.shards.slots {
		if state, _, _ := slot.look(); state != Elsewhere {
			t.move(Shard(s), Elsewhere, nil, cause)
		}
	}
	t.shards.caches.assign(newShardSet(len(t.shards.slots)))
}

// working reports whether a reconcile runs.
func (t *tenure) working() bool {
	return slices.ContainsFunc(t.shards.slots, func(s *slot) bool {
		_, running, _ := s.look()
		return running > 0
	})
}

// holding reports whether this member may still own a shard.
func (t *tenure) holding() bool {
	return slices.ContainsFunc(t.shards.slots, func(s *slot) bool {
		state, _, _ := s.look()
		return state != Elsewhere
	})
}

// move changes the state of a shard, and reports it.
func (t *tenure) move(s Shard, to State, r *right, why error) {
	move := t.shards.slots[s].set(to, r, why)
	move.Shard = s
	t.shards.moved(move)
	logger := klog.FromContext(t.led)
	switch {
	case why != nil && move.From.owned():
		logger.Info("Lost a shard", "shard", s, "reason", why)
	case move.Acquired() || move.Released():
		logger.V(2).Info("Shard moved", "shard", s, "to", to, "token", move.Token)
	default:
		logger.V(4).Info("Shard changed", "shard", s, "from", move.From, "to", to)
	}
	if t.shards.config.Observe != nil {
		t.shards.config.Observe(move)
	}
}
