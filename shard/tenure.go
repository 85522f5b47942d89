// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"cmp"
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"

	"example.com/informerstack/internal/helpers/done"
	"example.com/informerstack/leaderelection"
)

// maxRequests bounds the requests that a member makes at a time, so that the renewals of its
// membership do not wait behind them in the client's rate limiter.
const maxRequests = 4

// tenure is the work of one term of membership: the manager of this process's shards.
//
//	T1  an acquisition counts when the server has answered it. If a write without an answer was
//	    done, the informer shows that: a shard that names this identity is acquired again, and one
//	    that names no member, or another one, is released
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
	answer  *coordinationv1.Lease // of the last write, while it is newer than the view
	busy    bool                  // a write is under way
	sent    time.Time             // acquireTime of the last acquisition in this term
	retry   time.Time             // not before
	base    string                // the version that the last write replaces; "" if it creates one
	refused bool                  // the server has another version; the informer shows base
	missing string                // the version that first showed no Lease of the shard
	newest  string                // the newest version of the Lease that was seen
}

func newTenure(s *Shards, member *membership, led context.Context) *tenure {
	return &tenure{
		shards: s, member: member, me: member.identity, led: led,
		term: leaderelection.TermContext(led), claims: make([]claim, len(s.slots)),
		results: make(chan func(), maxRequests),
		pace:    pace{phase: s.firstPhase, began: time.Now()},
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
		return t.requests > 0 || t.load().running > 0
	}
	t.meet(v, now)
	if t.led.Err() != nil || t.failure != nil {
		t.leaving = true
		t.member.leaving.Store(true)
	}
	t.arrange(v, now)
	for s, lease := range v.shards {
		t.step(Shard(s), lease, now)
	}
	t.sync()
	t.adjust(now)
	t.sweep(now)
	t.publish()
	l := t.load()
	return !t.leaving || t.requests > 0 || l.running > 0 || l.held > 0
}

// at asks for a pass at that time at the latest.
func (t *tenure) at(when time.Time) {
	if when.Before(t.next) {
		t.next = when
	}
}

// over reports whether this member may not act any more: M3.
func (t *tenure) over() bool { return t.term.Err() != nil || t.member.restored.Load() }

// look returns the Leases as this member knows them: as the informer has seen them, or as newer
// answers say. A Lease that is older than it was seen before is of another history.
func (t *tenure) look() view {
	v := t.shards.read()
	for s, lease := range v.shards {
		c := &t.claims[s]
		switch {
		case c.answer == nil:
		case newer(c.answer.ResourceVersion, v.version):
			lease = c.answer
			t.at(time.Now().Add(t.shards.config.RetryPeriod))
		default:
			if newer(c.answer.ResourceVersion, c.newest) {
				c.newest = c.answer.ResourceVersion
			}
			c.answer = nil
		}
		if v.shards[s] = lease; lease == nil {
			c.missing = cmp.Or(c.missing, v.version)
			continue
		}
		if c.refused && lease.ResourceVersion != c.base {
			c.refused, c.retry = false, time.Time{}
		}
		v.back = v.back || newer(c.newest, lease.ResourceVersion)
		c.missing, c.newest = "", lease.ResourceVersion
		t.failure = cmp.Or(t.failure, t.shards.leases.checkCount(lease))
	}
	if v.back {
		t.member.restored.Store(true)
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
func (t *tenure) step(s Shard, lease *coordinationv1.Lease, now time.Time) {
	slot := t.shards.slots[s].look()
	state, running, right := slot.state, slot.running, slot.right
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
		// A person may have written this member into the Lease, or a write without an answer was
		// done: then the others wait until this member has released the shard.
		wanted = wanted || mine
		if running == 0 && wanted && t.free(s, lease, now) && t.may(c, now) {
			t.move(s, Acquiring, nil, nil)
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
		switch {
		case c.busy:
		case !mine: // an answer was lost
			t.move(s, Elsewhere, nil, nil)
		case t.may(c, now):
			t.release(s, lease)
		}
	}
}

// isGrant reports whether the Lease of a shard gives a member that right: another token, or another
// UID, is that of a Lease that was deleted or taken in between.
func isGrant(lease *coordinationv1.Lease, identity string, r *right) bool {
	return holderOf(lease) == identity && tokenOf(lease) == r.token
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
	owned := sets.New[Shard]()
	for s, slot := range t.shards.slots {
		if slot.look().state.owned() {
			owned.Insert(Shard(s))
		}
	}
	t.shards.caches.assign(owned)
	stored := t.shards.caches.status().stored
	for _, s := range sets.List(owned) {
		switch state := t.shards.slots[s].look().state; {
		case state == Syncing && stored.Has(s):
			t.move(s, Active, nil, nil)
		case state == Active && !stored.Has(s):
			t.move(s, Syncing, nil, nil)
		}
	}
}

// drop gives up everything, because the term is over. Nothing is released: other members take the
// shards.
func (t *tenure) drop() {
	cause := context.Cause(t.term)
	if t.member.restored.Load() {
		cause = cmp.Or(cause, errRestored)
		t.failure = errRestored // it is no member any more
	}
	for s, slot := range t.shards.slots {
		if slot.look().state != Elsewhere {
			t.move(Shard(s), Elsewhere, nil, cause)
		}
	}
	t.shards.caches.assign(sets.New[Shard]())
}

// load is what this member has.
type load struct {
	held    int       // shards that are not Elsewhere: it may own them
	owned   int       // shards
	active  int       // shards
	running int       // reconciles
	syncing time.Time // when the oldest shard that is not active began to sync; or zero
}

func (t *tenure) load() (l load) {
	for _, slot := range t.shards.slots {
		now := slot.look()
		l.running += now.running
		if now.state != Elsewhere {
			l.held++
		}
		if now.state.owned() {
			l.owned++
		}
		switch {
		case now.state == Active:
			l.active++
		case now.state == Syncing && (l.syncing.IsZero() || now.since.Before(l.syncing)):
			l.syncing = now.since
		}
	}
	return l
}

// move changes the state of a shard, and reports it.
func (t *tenure) move(s Shard, to State, r *right, why error) {
	m := t.shards.slots[s].set(to, r, why)
	m.shard = s
	t.shards.moved(m)
	logger := klog.FromContext(t.led)
	switch {
	case why != nil && m.from.owned():
		logger.Info("Lost a shard", "shard", s, "reason", why)
	case m.acquired() || m.released():
		logger.V(2).Info("Shard moved", "shard", s, "to", to, "token", m.token)
	default:
		logger.V(4).Info("Shard changed", "shard", s, "from", m.from, "to", to)
	}
	if t.shards.observe != nil {
		t.shards.observe(m)
	}
}
